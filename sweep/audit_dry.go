package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxDryEffects bounds what a dry audit holds: what the provider shows is kept nowhere
// else.
const maxDryEffects = 100_000

// dryAudit is the ledger of one dry audit: what was seen lies over what is stored, and
// nothing is written. Failures that nobody stored yet do not count towards what fails
// again and again.
type dryAudit struct {
	*Dry
	Accounts
	effects map[recon.EffectIdentity]recon.Effect
	named   map[string][]recon.EffectIdentity // by reference, key and id
	shelf   []recon.Effect                    // of the walk under way
}

// dryLedger is what a dry audit reads.
type dryLedger interface {
	Reader
	Accounts
}

// MakeDry gives an audit that asks and judges like a, and writes nothing: no run, no hold,
// no effect, no conclusion. It serves one run.
func (a *Audit) MakeDry(real dryLedger) *Audit {
	d := &dryAudit{
		Dry: NewDry(real), Accounts: real,
		effects: map[recon.EffectIdentity]recon.Effect{}, named: map[string][]recon.EffectIdentity{},
	}
	s := *a.Sweep
	s.Ledger = d
	dry := *a
	dry.Sweep, dry.Accounts, dry.Recover, dry.all = &s, d, nil, true
	return &dry
}

var (
	_ Ledger   = (*dryAudit)(nil)
	_ Accounts = (*dryAudit)(nil)
)

// Record remembers what was seen.
func (d *dryAudit) Record(ctx context.Context, b ledger.Batch) (ledger.Recorded, error) {
	for _, e := range b.Effects {
		id := e.Identity()
		if _, again := d.effects[id]; !again {
			for _, name := range []string{strings.TrimSpace(e.Reference), e.Key, e.ID} {
				if name != "" && !slices.Contains(d.named[name], id) {
					d.named[name] = append(d.named[name], id)
				}
			}
		}
		d.effects[id] = e
	}
	if len(d.effects) > maxDryEffects {
		return ledger.Recorded{}, fmt.Errorf("a dry run keeps what it sees in memory, and there are more than %d effects: narrow the window with --from and --to", maxDryEffects)
	}
	b.Effects = nil
	return d.Dry.Record(ctx, b)
}

// Cases gives the cases with what was seen of them.
func (d *dryAudit) Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error) {
	cases, err := d.Accounts.Cases(ctx, ids)
	for i := range cases {
		c := &cases[i]
		have := map[recon.EffectIdentity]bool{}
		for j, e := range c.Effects {
			have[e.Identity()] = true
			c.Effects[j] = d.now(e)
		}
		for _, name := range []string{string(c.Operation.ID), c.Operation.Key, c.Operation.EffectID, c.Operation.Group} {
			for _, id := range d.named[name] {
				if !have[id] {
					have[id] = true
					c.Effects = append(c.Effects, d.effects[id])
				}
			}
		}
	}
	return cases, err
}

// Named reads which operations effects name.
func (d *dryAudit) Named(ctx context.Context, effects []recon.Effect) ([]recon.OperationID, error) {
	return d.Accounts.Named(ctx, effects)
}

// Children adds what was seen.
func (d *dryAudit) Children(ctx context.Context, parents []string) ([]recon.Effect, error) {
	children, err := d.Accounts.Children(ctx, parents)
	have := map[recon.EffectIdentity]bool{}
	for i, e := range children {
		have[e.Identity()] = true
		children[i] = d.now(e)
	}
	for id, e := range d.effects {
		if !have[id] && slices.ContainsFunc(parents, e.Under) {
			children = append(children, e)
		}
	}
	return children, err
}

// now gives a stored effect as it was seen last.
func (d *dryAudit) now(e recon.Effect) recon.Effect {
	seen, again := d.effects[e.Identity()]
	if !again {
		return e
	}
	seen.Owner = e.Owner
	return seen
}

// Known adds what was seen.
func (d *dryAudit) Known(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]recon.Effect, error) {
	known, err := d.Accounts.Known(ctx, ids)
	for _, id := range ids {
		if e, seen := d.effects[id]; seen && known != nil {
			if was, there := known[id]; there {
				e.Owner = was.Owner
			}
			known[id] = e
		}
	}
	return known, err
}

// AuditOwned says that owners must be walked through: the ledger does not know those of
// what was only seen.
func (d *dryAudit) AuditOwned(context.Context, ledger.AuditScope) (int, error) { return -1, nil }

// AuditAny counts what was seen.
func (d *dryAudit) AuditAny(ctx context.Context, s ledger.AuditScope) (operations, effects bool, err error) {
	operations, effects, err = d.Accounts.AuditAny(ctx, s)
	for _, e := range d.effects {
		effects = effects || s.Window.Contains(e.CreatedAt)
	}
	return operations, effects, err
}

// AuditShelf gives what is stored without owner and what was only seen, read whole when a
// walk begins.
func (d *dryAudit) AuditShelf(ctx context.Context, s ledger.AuditScope, after ledger.AuditPlace, limit int) ([]recon.Effect, error) {
	if after == (ledger.AuditPlace{}) {
		if err := d.fillShelf(ctx, s); err != nil {
			return nil, err
		}
	}
	n := min(limit, len(d.shelf))
	piece := d.shelf[:n]
	d.shelf = d.shelf[n:]
	return piece, nil
}

func (d *dryAudit) fillShelf(ctx context.Context, s ledger.AuditScope) error {
	var seen []recon.EffectIdentity
	for id, e := range d.effects {
		if s.Window.Contains(e.CreatedAt) {
			seen = append(seen, id)
		}
	}
	stored, err := d.Accounts.Known(ctx, seen)
	if err != nil {
		return err
	}
	d.shelf = nil
	for _, id := range seen {
		if _, there := stored[id]; !there {
			d.shelf = append(d.shelf, d.effects[id])
		}
	}
	for after := (ledger.AuditPlace{}); ; {
		piece, err := d.Accounts.AuditShelf(ctx, s, after, auditChunk)
		if err != nil {
			return err
		}
		for _, e := range piece {
			d.shelf = append(d.shelf, d.now(e))
		}
		if len(piece) < auditChunk {
			break
		}
		after = ledger.PlaceOf(piece[len(piece)-1])
	}
	slices.SortFunc(d.shelf, func(a, b recon.Effect) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return nil
}
