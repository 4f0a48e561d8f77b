package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

type sweepFlags struct {
	sources []string
	limit   int
	now     string
	dryRun  bool
}

func newSweepCommand(a *app) *cobra.Command {
	return a.sweepCommand((*sweep.Sweep).Run, &cobra.Command{
		Use:   "sweep",
		Short: "Ask the sources for the truth of open operations that are due, once",
		Long: "Takes every operation that is due (unknown, manual_review, stale pending, or in progress under a lease that is over), " +
			"asks its source, and closes it with evidence or keeps it open.\n" +
			"A source that could not be asked is no failure. Exit 4: another run sweeps the source now.",
	})
}

func newReverifyCommand(a *app) *cobra.Command {
	return a.sweepCommand((*sweep.Sweep).Reverify, &cobra.Command{
		Use:   "reverify",
		Short: "Look again at closed operations whose time has come, once",
		Long: "Effects can turn bad after they were good, and a closing can have been wrong: closed operations are looked at again " +
			"after 1, 7, 30 and 90 days, through the same steps as a sweep.",
	})
}

// runFunc is one of the two kinds of runs.
type runFunc func(*sweep.Sweep, context.Context, sweep.Options) (sweep.Outcome, error)

// sweepCommand gives both kinds of runs the same flags.
func (a *app) sweepCommand(run runFunc, cmd *cobra.Command) *cobra.Command {
	var f sweepFlags
	cmd.Args = exactly()
	cmd.RunE = a.verb(func(ctx context.Context, _ []string) error { return a.sweep(ctx, cmd.Name(), run, f) })
	cmd.Flags().StringArrayVar(&f.sources, "source", nil, "only this source; may be repeated (default: all)")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "take at most so many operations from each source (default: all that are due)")
	cmd.Flags().StringVar(&f.now, "now", "", "judge ages and windows by this instant, or the start of this day; leases stay with the database's clock")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change and change nothing; at most 10,000 operations a source")
	return cmd
}

// change is one operation that a sweep moved, or would.
type change struct {
	operation recon.OperationID
	from, to  recon.State
	rule      string
	reason    string
}

func (a *app) sweep(ctx context.Context, name string, run runFunc, f sweepFlags) error {
	c, err := a.needConfig(name)
	if err != nil {
		return err
	}
	if f.limit < 0 {
		return misuse("--limit %d: write a number above 0", f.limit)
	}
	chosen, err := chooseSources(c, f.sources)
	if err != nil {
		return err
	}
	fixed, err := parseInstant("now", f.now, c.Zone, dayStart)
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	now, err := a.clock(ctx, l, fixed)
	if err != nil {
		return err
	}
	manner := reports.Done
	if f.dryRun {
		manner = reports.DryRun
	}
	var failures []error
	outcomes, changes := []sweep.Outcome{}, []change{}
	for _, source := range chosen {
		s, err := daemon.NewSweep(c, source, l, nil)
		if err != nil {
			return err
		}
		s.Holder, s.Log = holder(), a.logger()
		if f.dryRun {
			s.Ledger = sweep.NewDry(l)
		}
		s.Watch.Judged = func(c recon.Case, d recon.Decision) {
			if d.From != d.To || d.Release {
				changes = append(changes, change{d.Operation, d.From, d.To, d.Rule, d.Reason})
			}
		}
		out, err := run(s, ctx, sweep.Options{Now: now, Limit: f.limit})
		if out.RunID != "" || err == nil {
			outcomes = append(outcomes, out)
		}
		failures = append(failures, err)
	}
	text := func(w io.Writer) error {
		if len(outcomes) == 0 && errors.Join(failures...) != nil {
			return nil // none began; the errors say why
		}
		return writeSweep(w, outcomes, changes, manner)
	}
	return errors.Join(append(failures, a.print(outcomes, text))...)
}

func chooseSources(c *config.Config, names []string) ([]config.Source, error) {
	if len(c.Sources) == 0 {
		return nil, misuse("%s names no source: add one under sources (`reconciler config example` shows how)", c.Path)
	}
	if len(names) == 0 {
		return c.Sources, nil
	}
	var chosen []config.Source
	for _, name := range names {
		s, ok := c.Source(recon.SourceName(name))
		if !ok {
			var known []recon.SourceName
			for _, s := range c.Sources {
				known = append(known, s.Name)
			}
			return nil, misuse("--source %s: %s has no such source; it has: %s", name, c.Path, words(known))
		}
		if !slices.ContainsFunc(chosen, func(o config.Source) bool { return o.Name == s.Name }) {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

func (c change) text(m reports.Manner) string {
	became, to := "is now", string(c.to)
	if m == reports.DryRun {
		became = "would become"
	}
	if c.to == recon.Pending {
		to += ", released to be sent once more under its key"
	}
	return fmt.Sprintf("%s was %s and %s %s (%s): %s", recon.Printable(string(c.operation)), c.from, became, to, c.rule, recon.Printable(c.reason))
}

// writeSweep tells what changed, operation by operation, and then the sums.
func writeSweep(w io.Writer, outcomes []sweep.Outcome, changes []change, m reports.Manner) error {
	for _, c := range changes {
		if _, err := fmt.Fprintln(w, c.text(m)); err != nil {
			return err
		}
	}
	return reports.Sweeps(w, runsOf(outcomes), m)
}

func runsOf(outcomes []sweep.Outcome) []reports.Sweep {
	runs := make([]reports.Sweep, 0, len(outcomes))
	for _, o := range outcomes {
		runs = append(runs, reports.Sweep(o))
	}
	return runs
}
