package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

func newFindingsCommand(a *app) *cobra.Command {
	show := &cobra.Command{
		Use: "show ID", Short: "Tell everything about one finding: both sides, what was asked, what comes next, who did what",
		Args: exactly("a finding's id"), RunE: a.verb(a.findingsShow),
	}
	return group("findings", "List and show findings, and act on them",
		a.newFindingsList(), show, a.newAcknowledge(), a.newSnooze(), a.newAssign(), a.newCheckNow(), a.newResolve(), a.newReject())
}

// unsettled are the states that wait for somebody or something.
var unsettled = []recon.FindingState{recon.FindingOpen, recon.FindingAcknowledged, recon.FindingSnoozed}

func (a *app) newFindingsList() *cobra.Command {
	var f ledger.FindingFilter
	var source, operation string
	var kinds, states []string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List findings, newest first; without --state and --all those that are not over", Args: exactly(),
	}
	cmd.Flags().StringVar(&source, "source", "", "only of this source")
	cmd.Flags().StringArrayVar(&kinds, "kind", nil, "only of this kind; may be repeated")
	cmd.Flags().StringArrayVar(&states, "state", nil, "only in this state (open, acknowledged, snoozed, settled, ended); may be repeated")
	cmd.Flags().StringVar(&operation, "operation", "", "only on this operation")
	cmd.Flags().BoolVar(&all, "all", false, "also those that were settled or ended")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many, up to 10,000")
	cmd.RunE = a.verb(func(ctx context.Context, _ []string) error {
		f.Source, f.Operation, f.Kinds, f.States = recon.SourceName(source), recon.OperationID(operation), nil, nil
		for _, k := range kinds {
			if !slices.Contains(recon.FindingKinds, recon.FindingKind(k)) {
				return misuse("--kind %s: write one of %s", k, words(recon.FindingKinds))
			}
			f.Kinds = append(f.Kinds, recon.FindingKind(k))
		}
		known := append(slices.Clone(unsettled), recon.FindingSettled, recon.FindingEnded)
		for _, s := range states {
			if !slices.Contains(known, recon.FindingState(s)) {
				return misuse("--state %s: write one of %s", s, words(known))
			}
			f.States = append(f.States, recon.FindingState(s))
		}
		if len(states) == 0 && !all {
			f.States = unsettled
		}
		if f.Limit < 1 || f.Limit > 10_000 {
			return misuse("--limit %d: write a number from 1 to 10000", f.Limit)
		}
		return a.findingsList(ctx, f)
	})
	return cmd
}

func (a *app) findingsList(ctx context.Context, f ledger.FindingFilter) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	if err := knownSource(ctx, l, c, f.Source); err != nil {
		return err
	}
	if f.Operation != "" {
		if _, err := l.Operation(ctx, f.Operation); err != nil {
			return err
		}
	}
	rows, err := l.Findings(ctx, f)
	if err != nil {
		return err
	}
	defer a.cut(len(rows), f.Limit)
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	list := make([]reports.FindingRow, 0, len(rows))
	for _, r := range rows {
		r.State = r.StateAt(now)
		list = append(list, reports.FindingRow(r))
	}
	if a.format == "json" {
		return reports.FindingsJSON(a.out, list, now)
	}
	exponents, err := exponentsOf(ctx, l, f.Source)
	if err != nil {
		return err
	}
	return reports.Findings(a.out, reports.FindingList{Rows: list, Now: now, Zone: c.Zone, Exponents: exponents})
}

func (a *app) findingsShow(ctx context.Context, args []string) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		s, err := l.FindingStory(ctx, args[0])
		if err != nil {
			return err
		}
		now, err := l.Now(ctx)
		if err != nil {
			return err
		}
		s.State = s.StateAt(now)
		story := reports.FindingStory{FindingRow: reports.FindingRow(s.FindingRow), Effects: s.Effects, Stories: s.Stories, Acts: s.Acts}
		if a.format == "json" {
			return reports.FindingJSON(a.out, story, now)
		}
		return reports.Finding(a.out, story, now, c.Zone)
	})
}

// exponentsOf gives the currencies that a provider counts in its own way.
func exponentsOf(ctx context.Context, l *ledger.Ledger, source recon.SourceName) (map[string]int, error) {
	policies, err := l.Policies(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	for _, p := range policies { // of one provider; they differ from ISO 4217 in few currencies
		if source == "" || p.Source == source {
			return p.Exponents, nil
		}
	}
	return nil, nil
}
