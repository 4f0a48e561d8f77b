package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// recordTries is how often a batch is started anew when others changed the same rows
// at the same moment. Each try sees what they wrote, so a second one nearly always
// suffices.
const recordTries = 4

// errRaced says that somebody stored an effect, a link or a slot between our reading
// and our writing.
var errRaced = errors.New("raced by another writer")

// Record writes a batch in one transaction. An operation whose version is no longer
// the one of the decision is left alone and reported as lost. A stale hold
// (*StaleHoldError) writes nothing. The number of statements does not depend on the
// size of the batch.
//
// A batch that the database refuses for what it holds is written again in ever
// smaller parts, so that one bad row never stops the others; see [Recorded.SetAside].
func (l *Ledger) Record(ctx context.Context, b Batch) (Recorded, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := b.check(); err != nil {
		return Recorded{}, err
	}
	out := newRecorded()
	err := l.recordAll(ctx, b, &out)
	slices.Sort(out.Lost)
	return out, l.fault("record a batch", err)
}

// check refuses batches that no run of the product makes.
func (b *Batch) check() error {
	if b.Now.IsZero() {
		return &UsageError{"ledger: a batch needs the time of its pass"}
	}
	if (b.SourceState != nil || b.List != nil) && b.Hold.Source == "" {
		return &UsageError{"ledger: a source's state is written under its hold only"}
	}
	seen := make(map[recon.OperationID]bool, len(b.Decisions))
	for _, d := range b.Decisions {
		if _, guarded := b.Versions[d.Operation]; !guarded {
			return &UsageError{"ledger: the decision on " + string(d.Operation) + " has no version to guard it"}
		}
		if seen[d.Operation] {
			return &UsageError{"ledger: two decisions on " + string(d.Operation) + " in one batch"}
		}
		seen[d.Operation] = true
	}
	return nil
}

// recordOnce tries one batch until nobody interferes.
func (l *Ledger) recordOnce(ctx context.Context, b Batch) (Recorded, error) {
	for try := 1; ; try++ {
		var out Recorded
		err := l.inTx(ctx, func(tx pgx.Tx) (err error) {
			out, err = l.recordIn(ctx, tx, b)
			return err
		})
		if err == nil || try == recordTries || !startAnew(err) {
			if errors.Is(err, errRaced) {
				err = &Fault{Op: "record a batch", Kind: FaultConflict, Place: l.place, err: err}
			}
			return out, l.fault("record a batch", err)
		}
	}
}

// startAnew reports whether the same batch may succeed when it is started anew.
func startAnew(err error) bool {
	return errors.Is(err, errRaced) || isKind(faultAt("", "", err), FaultConflict)
}

// recordIn is the transaction: locks in one order (source, operations, effects), then
// the writing.
func (l *Ledger) recordIn(ctx context.Context, tx pgx.Tx, b Batch) (Recorded, error) {
	out := newRecorded()
	var locks pgx.Batch
	l.checkHold(&locks, b.Hold, b.SourceState)
	l.saveList(&locks, b.Hold.Source, b.List)
	ops := l.lockOperations(&locks, b.Decisions)
	have := l.lockEffects(&locks, b.identities())
	if err := send(ctx, tx, &locks); err != nil {
		return out, err
	}
	live, err := l.liveLeases(ctx, tx, b.Decisions, ops)
	if err != nil {
		return out, err
	}
	p := survive(&b, ops, have, live)
	out.Lost = p.lost
	if err := l.refuseReleases(ctx, tx, p, &out); err != nil {
		return out, err
	}
	s, err := arrange(have, &b, p.links)
	if err != nil {
		return out, err
	}
	told, err := l.save(ctx, tx, &b, s, p)
	if err != nil {
		return out, err
	}
	told.count(&out)
	return out, l.conclude(ctx, tx, p, told, &b)
}

// save writes all that the operations' journals may name, in one round trip.
func (l *Ledger) save(ctx context.Context, tx pgx.Tx, b *Batch, s shelf, p *plan) (told, error) {
	var all pgx.Batch
	if err := l.saveLooks(&all, b); err != nil {
		return told{}, err
	}
	if err := l.saveEffects(&all, s, b.Now); err != nil {
		return told{}, err
	}
	if err := l.saveGroups(&all, b, s); err != nil {
		return told{}, err
	}
	t, err := l.saveFindings(&all, p.tellings(b), b.Now)
	if err != nil {
		return told{}, err
	}
	return t, send(ctx, tx, &all)
}

func newRecorded() Recorded {
	return Recorded{Opened: map[recon.FindingKind]int{}, Ended: map[recon.FindingKind]int{}}
}

// add sums up the parts of a batch.
func (r *Recorded) add(o Recorded) {
	r.Lost = append(r.Lost, o.Lost...)
	r.Kept = append(r.Kept, o.Kept...)
	r.SetAside = append(r.SetAside, o.SetAside...)
	for k, n := range o.Opened {
		r.Opened[k] += n
	}
	for k, n := range o.Ended {
		r.Ended[k] += n
	}
}

// identities lists the effects that a batch saw or links, once each.
func (b *Batch) identities() []recon.EffectIdentity {
	seen := make(map[recon.EffectIdentity]bool, len(b.Effects))
	out := make([]recon.EffectIdentity, 0, len(b.Effects))
	add := func(id recon.EffectIdentity) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	for _, e := range b.Effects {
		add(e.Identity())
	}
	for _, d := range b.Decisions {
		for _, m := range d.Links {
			if closes(m) {
				add(m.Effect)
			}
		}
	}
	return out
}

// closes reports whether a match is more than a suggestion, so that it may own.
func closes(m recon.Match) bool {
	return m.Certainty == recon.Proof || m.Certainty == recon.StrongSign
}

// operationRow is what is read of an operation under its lock.
type operationRow struct {
	source        string
	version       int64
	state         recon.State
	effectID      string
	errorCode     string
	policyVersion int
	leaseUntil    time.Time
	slot          string // held now
	wantsSlot     string // what a release must hold; empty where the policy does not say so
}

// lockOperationsSQL locks in the order of ids, as every writer does. Rules decide by
// the policy in force, or by the one that the operation was opened under where its
// action has none any more. The slot is made as reconciler.intent_slot makes it, which
// only its owner may call.
const lockOperationsSQL = `
SELECT o.operation_id, o.source, o.version, o.state, o.effect_id, o.error_code, coalesce(p.version, o.policy_version),
	o.lease_until, o.slot,
	CASE WHEN (coalesce(p.body, w.body) ->> 'one_open')::boolean THEN encode(sha256(convert_to(
		json_build_array(o.action, o.target, o.amount, o.currency)::text, 'UTF8')), 'hex') END
FROM reconciler.operations o
LEFT JOIN reconciler.policies p ON p.tenant = $1 AND p.action = o.action AND p.active
LEFT JOIN reconciler.policies w ON w.tenant = $1 AND w.action = o.action AND w.version = o.policy_version
WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])
ORDER BY o.operation_id
FOR NO KEY UPDATE OF o`

// lockOperations locks the operations of decisions, and gives them once the batch was sent.
func (l *Ledger) lockOperations(with *pgx.Batch, ds []recon.Decision) map[recon.OperationID]operationRow {
	ids := make([]string, 0, len(ds))
	for _, d := range ds {
		ids = append(ids, string(d.Operation))
	}
	out := make(map[recon.OperationID]operationRow, len(ids))
	if len(ids) == 0 {
		return out
	}
	var id recon.OperationID
	var r operationRow
	with.Queue(lockOperationsSQL, l.tenant, ids).Query(eachRow([]any{text(&id), text(&r.source), &r.version, text(&r.state), text(&r.effectID),
		text(&r.errorCode), number(&r.policyVersion), instant(&r.leaseUntil), text(&r.slot), text(&r.wantsSlot)}, func() error {
		out[id] = r
		return nil
	}))
	return out
}

// conclusion is a decision that will be written.
type conclusion struct {
	recon.Decision
	row      operationRow
	newLinks []recon.Match // links that the ledger does not have yet
	kept     string        // why it is not carried out; empty: it is
}

// plan is what of a batch will be written.
type plan struct {
	conclusions []*conclusion // in the order of operation ids
	links       []recon.Match
	lost        []recon.OperationID
}

// liveLeases tells which decisions would end a lease that is live. The database's clock
// judges that: a run with another idea of time (--now) takes no lease away. The clock is
// read only where a decision would end one.
func (l *Ledger) liveLeases(ctx context.Context, tx pgx.Tx, ds []recon.Decision, ops map[recon.OperationID]operationRow) (map[recon.OperationID]bool, error) {
	var now time.Time
	live := map[recon.OperationID]bool{}
	for _, d := range ds {
		// Proof of success ends a lease at any time.
		if d.From != recon.InProgress || d.To == recon.InProgress || d.To == recon.Succeeded {
			continue
		}
		if now.IsZero() {
			var err error
			if now, err = clock(ctx, tx); err != nil {
				return nil, err
			}
		}
		if ops[d.Operation].leaseUntil.After(now) {
			live[d.Operation] = true
		}
	}
	return live, nil
}

// survive drops decisions that rest on what is no longer so: the operation changed,
// an effect became somebody else's, or the lease that it would end is live.
func survive(b *Batch, ops map[recon.OperationID]operationRow, have map[recon.EffectIdentity]held, live map[recon.OperationID]bool) *plan {
	p := &plan{}
	owner := make(map[recon.EffectIdentity]string, len(b.Effects))
	for id, h := range have {
		owner[id] = h.effect.Owner
	}
	for _, e := range b.Effects {
		if _, known := owner[e.Identity()]; !known {
			owner[e.Identity()] = ""
		}
	}
	ds := slices.Clone(b.Decisions)
	slices.SortFunc(ds, func(x, y recon.Decision) int { return strings.Compare(string(x.Operation), string(y.Operation)) })
	for _, d := range ds {
		row, known := ops[d.Operation]
		if !known || row.version != b.Versions[d.Operation] || row.state != d.From || live[d.Operation] || !free(d, owner) {
			p.lost = append(p.lost, d.Operation)
			continue
		}
		c := &conclusion{Decision: d, row: row}
		for _, m := range d.Links {
			if !closes(m) {
				continue
			}
			m.Operation = d.Operation
			if owner[m.Effect] == "" || m.Group != nil && d.From != d.To {
				c.newLinks = append(c.newLinks, m)
			}
			owner[m.Effect] = m.Owner()
			p.links = append(p.links, m)
		}
		p.conclusions = append(p.conclusions, c)
	}
	return p
}

// free reports whether every effect that d links is there and nobody else's.
func free(d recon.Decision, owner map[recon.EffectIdentity]string) bool {
	for _, m := range d.Links {
		m.Operation = d.Operation
		if o, there := owner[m.Effect]; closes(m) && (!there || o != "" && o != m.Owner()) {
			return false
		}
	}
	return true
}

const heldSlotsSQL = `
SELECT o.slot, o.operation_id FROM reconciler.operations o
WHERE o.tenant = $1 AND o.slot IS NOT NULL AND o.slot = ANY ($2::text[])`

// refusedRecheck is when a refused release is looked at again: slots free themselves
// when the operation that holds them closes.
const refusedRecheck = 15 * time.Minute

// refuseReleases keeps operations from being released while another one of the same
// intent is open. They stay as they are and are looked at again.
func (l *Ledger) refuseReleases(ctx context.Context, tx pgx.Tx, p *plan, out *Recorded) error {
	var wanted []string
	for _, c := range p.conclusions {
		if c.Release && c.row.wantsSlot != "" && c.row.slot == "" {
			wanted = append(wanted, c.row.wantsSlot)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, heldSlotsSQL, l.tenant, wanted)
	if err != nil {
		return err
	}
	holder := map[string]recon.OperationID{}
	var slot string
	var by recon.OperationID
	if _, err := pgx.ForEachRow(rows, []any{&slot, text(&by)}, func() error { holder[slot] = by; return nil }); err != nil {
		return err
	}
	for _, c := range p.conclusions {
		if !c.Release || c.row.wantsSlot == "" || c.row.slot != "" {
			continue
		}
		if by := holder[c.row.wantsSlot]; by != "" && by != c.Operation {
			c.keep("release refused: operation " + string(by) + " of the same intent is open")
			out.Kept = append(out.Kept, Kept{Operation: c.Operation, Reason: c.kept})
			continue
		}
		holder[c.row.wantsSlot] = c.Operation
	}
	return nil
}

// keep turns a decision into one that changes no state.
func (c *conclusion) keep(why string) {
	c.kept, c.Reason = why, why
	c.To, c.Release = c.From, false
}
