package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

type auditFlags struct {
	sources        []string
	from, to, now  string
	dryRun         bool
	failOnFindings bool
	failOnUnseen   bool
}

func newAuditCommand(a *app) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Account for every operation and every effect of a window, both ways, once",
		Long: "Lists everything that the sources hold in the window, pairs it with the operations of the ledger, and puts each of both " +
			"into exactly one class. What is wrong becomes a finding, and states change by the same rules as in a sweep.\n" +
			"Without --from and --to the window begins an hour before the last complete point and ends where the provider is sure to show " +
			"what exists. What could not be seen is told and never counts as absent. Exit 4: another run audits the source now.",
		Args: exactly(),
		RunE: a.verb(func(ctx context.Context, _ []string) error { return a.audit(ctx, f) }),
	}
	cmd.Flags().StringArrayVar(&f.sources, "source", nil, "only this source; may be repeated (default: all)")
	cmd.Flags().StringVar(&f.from, "from", "", "count from this instant, or the start of this day")
	cmd.Flags().StringVar(&f.to, "to", "", "count up to this instant, or the end of this day")
	cmd.Flags().StringVar(&f.now, "now", "", "judge ages and windows by this instant, or the start of this day; leases stay with the database's clock")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "ask and tell the same, and change nothing; at most 100,000 effects a source")
	cmd.Flags().BoolVar(&f.failOnFindings, "fail-on-findings", false, "exit 3 when there are findings")
	cmd.Flags().BoolVar(&f.failOnUnseen, "fail-on-unseen", false, "exit 3 when a part could not be seen")
	return cmd
}

func (a *app) audit(ctx context.Context, f auditFlags) error {
	c, err := a.needConfig("audit")
	if err != nil {
		return err
	}
	chosen, err := chooseSources(c, f.sources)
	if err != nil {
		return err
	}
	window, err := auditWindow(f, c.Zone)
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
	if at := now(); window.To.After(at) {
		return misuse("--to %s ends at %s, and now is %s: what is to come cannot be audited; give an end that has passed",
			f.to, recon.TimeText(window.To, c.Zone), recon.TimeText(at, c.Zone))
	}
	r, changes, failure := a.audits(ctx, c, l, chosen, sweep.AuditOptions{Now: now, Window: window}, f.dryRun)
	if failure != nil && len(r.Runs) == 0 {
		return failure
	}
	text := func(w io.Writer) error { return writeAudit(w, r, changes, c, now(), f.dryRun) }
	return errors.Join(failure, a.print(r, text), f.verdict(r))
}

// auditWindow reads the window; sides that are not given stay zero.
func auditWindow(f auditFlags, zone *time.Location) (w recon.Window, err error) {
	if w.From, err = parseInstant("from", f.from, zone, dayStart); err != nil {
		return w, err
	}
	if w.To, err = parseInstant("to", f.to, zone, dayEnd); err != nil {
		return w, err
	}
	if !w.From.IsZero() && !w.To.IsZero() && !w.From.Before(w.To) {
		return w, misuse("--from %s is not before --to %s", f.from, f.to)
	}
	return w, nil
}

// audits makes the audit of each source. One that fails does not stop the others.
func (a *app) audits(ctx context.Context, c *config.Config, l *ledger.Ledger, chosen []config.Source, o sweep.AuditOptions, dry bool) (sweep.AuditResult, []change, error) {
	var results []sweep.AuditResult
	var failures []error
	var changes []change
	for _, source := range chosen {
		one, err := daemon.NewAudit(c, source, l, nil)
		if err != nil {
			return sweep.AuditResult{}, nil, err
		}
		one.Holder, one.Log = holder(), a.logger()
		one.Watch.Judged = func(c recon.Case, d recon.Decision) {
			if d.From != d.To || d.Release {
				changes = append(changes, change{d.Operation, d.From, d.To, d.Rule, d.Reason})
			}
		}
		if dry {
			one = one.MakeDry(l)
		}
		r, err := one.Run(ctx, o)
		var window *sweep.WindowError
		switch {
		case errors.As(err, &window):
			err = misuse("%s: %v", source.Name, window)
		case err == nil:
			results = append(results, r)
		}
		failures = append(failures, err)
	}
	return sweep.MergeAudits(results, c.Zone), changes, errors.Join(failures...)
}

func (f auditFlags) verdict(r sweep.AuditResult) error {
	switch {
	case f.failOnFindings && len(r.Findings) > 0:
		return &foundError{count(len(r.Findings), "finding")}
	case f.failOnUnseen && len(r.Unseen) > 0:
		return &foundError{count(len(r.Unseen), "part") + " could not be seen"}
	}
	return nil
}

// writeAudit tells what changed, operation by operation, and then what was found.
func writeAudit(w io.Writer, r sweep.AuditResult, changes []change, c *config.Config, now time.Time, dry bool) error {
	manner := reports.Done
	if dry {
		manner = reports.DryRun
	}
	for _, ch := range changes {
		if _, err := fmt.Fprintln(w, ch.text(manner)); err != nil {
			return err
		}
	}
	sources := make([]reports.Audited, 0, len(r.Runs))
	for _, run := range r.Runs {
		sources = append(sources, reports.Audited{Source: run.Source, From: run.Window.From, To: run.Window.To, Operations: run.Operations,
			Effects: run.Effects, Calls: run.ProviderCalls, DurationMS: run.DurationMS})
	}
	feeds := make([]reports.Fed, 0, len(r.Feeds))
	for _, f := range r.Feeds {
		feeds = append(feeds, reports.Fed(f))
	}
	page := comparisonOf(r.CompareResult, now, c.Zone)
	page.Happened = nil // each of them was told as a change
	page.Exponents = map[string]int{}
	for _, s := range c.Sources {
		for currency, decimals := range s.Sheet.Exponents {
			page.Exponents[currency] = decimals
		}
	}
	return reports.Audit(w, sources, feeds, page, manner)
}
