package sweep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

const (
	// twinsWithin is how far from each other two operations of one intent are looked for:
	// what rules call a retry.
	twinsWithin = 24 * time.Hour
	// failingSince is how far back failures of a target are read, so that a target that
	// keeps failing is the same finding every night.
	failingSince = 400 * 24 * time.Hour
)

// across tells what no single operation shows: intents that were done twice under two
// operations, and what fails again and again.
func (u *audit) across(ctx context.Context) error {
	within := twinsWithin
	for _, p := range u.of.Policies {
		within = max(within, p.DuplicateWithin.Std())
	}
	err := u.of.Accounts.AuditTwins(ctx, u.scope(), within, func(ids []recon.OperationID) error { return u.suspects(ctx, ids) })
	if err != nil {
		return err
	}
	scope := u.scope()
	scope.Window = recon.Window{From: u.at.Add(-failingSince), To: u.at}
	err = u.of.Accounts.AuditFailed(ctx, scope, func(list []ledger.FailedEffect) error { return u.failing(ctx, list) })
	if err != nil {
		return err
	}
	return u.of.Accounts.AuditTotals(ctx, u.scope(), func(parents []string) error { return u.totals(ctx, parents) })
}

// totals holds what parents say of themselves against what hangs under them.
func (u *audit) totals(ctx context.Context, parents []string) error {
	all, err := u.of.Accounts.Children(ctx, parents)
	if err != nil {
		return err
	}
	children := all[:0]
	for _, e := range all {
		if e.Source == u.out.Source && slices.Contains(parents, e.Parent) && (e.Owner != "" || u.mayBeOurs(e)) {
			children = append(children, e)
		}
	}
	findings := rules.ParentTotals(children)
	u.holding = append(u.holding, prints(findings)...)
	return u.raise(ctx, findings, nil, children)
}

// suspects looks at operations of one intent.
func (u *audit) suspects(ctx context.Context, ids []recon.OperationID) error {
	var done []rules.Done
	var ours []recon.Operation
	var theirs []recon.Effect
	for part := range slices.Chunk(ids, u.batchSize()) {
		list, err := u.done(ctx, part)
		if err != nil {
			return err
		}
		for _, d := range list {
			ours, theirs = append(ours, d.Operation), append(theirs, d.Effects...)
		}
		done = append(done, list...)
	}
	return u.raise(ctx, rules.SuspectedDuplicates(done), ours, theirs)
}

// done gives those of the operations that have a completed effect, as they were before
// anything was found wrong with them: what succeeded was in no doubt.
func (u *audit) done(ctx context.Context, ids []recon.OperationID) ([]rules.Done, error) {
	cases, err := u.of.Accounts.Cases(ctx, ids)
	if err != nil {
		return nil, err
	}
	var done []rules.Done
	var open []recon.OperationID
	for _, c := range pair(cases, nil, nil) {
		d := rules.Done{Operation: c.Operation, Within: c.Policy.DuplicateWithin.Std()}
		for _, m := range c.Matches {
			if e, there := effectOf(c, m.Effect); there && binds(m, c.Operation) && e.Status == recon.Completed {
				d.Effects = append(d.Effects, e)
			}
		}
		if len(d.Effects) == 0 {
			continue
		}
		done = append(done, d)
		if d.Operation.State == recon.ManualReview {
			open = append(open, d.Operation.ID)
		}
	}
	reopened, err := u.of.Accounts.Reopened(ctx, open)
	for i := range done {
		if op := &done[i].Operation; reopened[op.ID] {
			op.State, op.ClosedAt = recon.Succeeded, time.Time{}
		}
	}
	return done, err
}

// failing looks at the failed effects of one target.
func (u *audit) failing(ctx context.Context, list []ledger.FailedEffect) error {
	failures := make([]rules.Failure, 0, len(list))
	theirs := make([]recon.Effect, 0, len(list))
	var ids []recon.OperationID
	for _, f := range list {
		if f.Operation == "" && !u.mayBeOurs(f.Effect) {
			continue
		}
		failures = append(failures, rules.Failure(f))
		theirs = append(theirs, f.Effect)
		if f.Operation != "" {
			ids = append(ids, f.Operation)
		}
	}
	findings := rules.Failing(failures, u.at)
	u.holding = append(u.holding, prints(findings)...)
	if len(findings) == 0 {
		return nil
	}
	cases, err := u.of.Accounts.Cases(ctx, ids[:min(len(ids), u.batchSize())])
	if err != nil {
		return err
	}
	ours := make([]recon.Operation, len(cases))
	for i, c := range cases {
		ours[i] = c.Operation
	}
	return u.raise(ctx, findings, ours, theirs)
}

// over ends findings that belong to no single operation and that no longer hold. What keeps
// failing was looked at as a whole; parents that were told of are looked at again, wherever
// their effects stand.
func (u *audit) over(ctx context.Context) error {
	parents, err := u.of.Accounts.AuditToldParents(ctx, u.out.Source)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(parents, u.batchSize()) {
		if err := u.totals(ctx, part); err != nil {
			return err
		}
	}
	ends, err := u.of.Accounts.AuditOver(ctx, u.out.Source, u.holding)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(ends, u.batchSize()) {
		if err := u.recordFindings(ctx, nil, part); err != nil {
			return err
		}
	}
	return nil
}

func sortedDifferences(list []recon.Difference) []recon.Difference {
	return slices.SortedFunc(slices.Values(list), func(a, b recon.Difference) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Ours, b.Ours), strings.Compare(a.Theirs, b.Theirs))
	})
}
