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
	run := auditRun{config: c, ledger: l, sources: chosen, options: sweep.AuditOptions{Now: now, Window: window}, dry: f.dryRun}
	failure := a.audits(ctx, &run)
	if failure != nil && len(run.result.Runs) == 0 {
		return failure
	}
	return errors.Join(failure, a.print(run.result, run.write), f.verdict(run.result))
}

// auditRun is one call of the verb: what to audit, and what came of it.
type auditRun struct {
	config  *config.Config
	ledger  *ledger.Ledger
	sources []config.Source
	options sweep.AuditOptions
	dry     bool

	result  sweep.AuditResult
	changes []change
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
func (a *app) audits(ctx context.Context, run *auditRun) error {
	var results []sweep.AuditResult
	var failures []error
	for _, source := range run.sources {
		one, err := daemon.NewAudit(run.config, source, run.ledger, nil)
		if err != nil {
			return err
		}
		one.Holder, one.Log = holder(), a.logger()
		one.Watch.Judged = func(c recon.Case, d recon.Decision) {
			if d.From != d.To || d.Release {
				run.changes = append(run.changes, change{d.Operation, d.From, d.To, d.Rule, d.Reason})
			}
		}
		if run.dry {
			one = one.MakeDry(run.ledger)
		}
		r, err := one.Run(ctx, run.options)
		var window *sweep.WindowError
		switch {
		case errors.As(err, &window):
			err = misuse("%s: %v", source.Name, window)
		case err == nil:
			results = append(results, r)
		}
		failures = append(failures, err)
	}
	run.result = sweep.MergeAudits(results, run.config.Zone)
	return errors.Join(failures...)
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

// write tells what changed, operation by operation, and then what was found.
func (run *auditRun) write(w io.Writer) error {
	page := reports.Accounts{Manner: reports.Done, Comparison: comparisonOf(run.result.CompareResult, run.options.Now(), run.config.Zone)}
	if run.dry {
		page.Manner = reports.DryRun
	}
	for _, ch := range run.changes {
		if _, err := fmt.Fprintln(w, ch.text(page.Manner)); err != nil {
			return err
		}
	}
	for _, r := range run.result.Runs {
		page.Sources = append(page.Sources, reports.Audited{Source: r.Source, From: r.Window.From, To: r.Window.To, Operations: r.Operations,
			Effects: r.Effects, Calls: r.ProviderCalls, DurationMS: r.DurationMS})
	}
	for _, f := range run.result.Feeds {
		page.Feeds = append(page.Feeds, reports.Fed(f))
	}
	page.Happened = nil // each of them was told as a change
	page.Exponents = map[string]int{}
	for _, s := range run.config.Sources {
		for currency, decimals := range s.Sheet.Exponents {
			page.Exponents[currency] = decimals
		}
	}
	return reports.Audit(w, page)
}
