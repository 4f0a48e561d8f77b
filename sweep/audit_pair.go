package sweep

import (
	"context"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// pairRule is what the journal names where an effect was given to its operation and
// nothing was concluded yet: all of its effects are to be known first.
const pairRule = "pair"

// link pairs the effects of a batch that belong to nobody yet with the operations that
// they name, and puts the links into the batch. States do not change: a second effect may
// stand on a later page.
func (u *audit) link(ctx context.Context, b *ledger.Batch) error {
	ids := make([]recon.EffectIdentity, len(b.Effects))
	for i, e := range b.Effects {
		ids[i] = e.Identity()
	}
	owners, err := u.Ledger.Owners(ctx, ids)
	if err != nil {
		return fmt.Errorf("read whose the effects are: %w", err)
	}
	var free []recon.Effect
	for _, e := range b.Effects {
		if owners[e.Identity()] == "" {
			free = append(free, e)
		}
	}
	return u.linkFree(ctx, free, b)
}

// linkFree does it for effects without owner, stored or about to be.
func (u *audit) linkFree(ctx context.Context, free []recon.Effect, b *ledger.Batch) error {
	if len(free) == 0 {
		return nil
	}
	named, err := u.of.Accounts.Named(ctx, free)
	if err != nil || len(named) == 0 {
		return err
	}
	cases, err := u.of.Accounts.Cases(ctx, named)
	if err != nil {
		return err
	}
	b.Versions = make(map[recon.OperationID]int64, len(cases))
	for _, c := range pair(cases, free, nil) {
		if d, news := linked(c, b.Looks); news {
			b.Decisions = append(b.Decisions, d)
			b.Versions[d.Operation] = c.Operation.Version
		}
	}
	return nil
}

// linked gives the links of an operation that the ledger does not have yet. A group's
// effect belongs to no single operation.
func linked(c recon.Case, looks []recon.Look) (recon.Decision, bool) {
	op := c.Operation
	d := recon.Decision{Operation: op.ID, Rule: pairRule, From: op.State, To: op.State, Check: c.Check}
	owned := map[recon.EffectIdentity]bool{}
	taken := op.EffectID != ""
	for _, e := range c.Effects {
		owned[e.Identity()] = e.Owner != ""
		taken = taken || e.Owner == string(op.ID)
	}
	for _, m := range c.Matches {
		if owned[m.Effect] || m.Group != nil || !binds(m, op) {
			continue
		}
		m.Role = recon.Surplus
		if !taken || m.Effect.ID == op.EffectID {
			m.Role, taken = recon.Main, true
		}
		d.Links = append(d.Links, m)
		d.Reason = fmt.Sprintf("The %s %s was seen and belongs to this operation.", recon.Noun(c.Policy.Effect), m.Effect.ID)
	}
	for _, l := range looks {
		if l.Outcome == recon.Found {
			d.LookIDs = append(d.LookIDs, l.ID)
		}
	}
	return d, len(d.Links) > 0
}

// binds reports whether a match makes the effect the operation's. A failed operation is
// contradicted by proof only.
func binds(m recon.Match, o recon.Operation) bool {
	return m.Certainty == recon.Proof || m.Certainty == recon.StrongSign && o.State != recon.Failed
}

// pairShelf pairs what came by other ways than this run's lists: events, files, and lists
// of operations that were not there yet.
func (u *audit) pairShelf(ctx context.Context) error {
	scope := ledger.AuditScope{Source: u.out.Source, Window: u.span.listed}
	var after ledger.AuditPlace
	for {
		free, err := u.of.Accounts.AuditShelf(ctx, scope, after, u.batchSize())
		if err != nil {
			return err
		}
		batch := ledger.Batch{RunID: u.run.ID, Now: u.options.Now()}
		if err := u.linkFree(ctx, free, &batch); err != nil {
			return err
		}
		if len(batch.Decisions) > 0 {
			recorded, err := u.Ledger.Record(ctx, batch)
			if err != nil {
				return fmt.Errorf("link %d operations with their effects: %w", len(batch.Decisions), err)
			}
			u.remember(recorded)
		}
		if len(free) < u.batchSize() {
			return nil
		}
		after = ledger.PlaceOf(free[len(free)-1])
	}
}
