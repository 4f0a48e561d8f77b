package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// failuresToTell is how often a conclusion is refused before people are told. Fewer
// would call them for a restart in the middle of a deployment.
const failuresToTell = 5

// setAsideWaits are the waits after the first, second… refusal; the last one stays.
var setAsideWaits = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour}

// recordAll records a batch, and in parts if the database refuses what it holds.
func (l *Ledger) recordAll(ctx context.Context, b Batch, out *Recorded) error {
	once, err := l.recordOnce(ctx, b)
	if err == nil {
		out.add(once)
		return nil
	}
	if !isKind(err, FaultData) {
		return err
	}
	rest, decisions := b.apart()
	if len(decisions.Decisions) == 0 {
		return l.recordRest(ctx, rest, err, out)
	}
	// Decisions first: what belongs to none must not stand in their way. It may be what was
	// refused, so that also a decision that is the only one is tried without it.
	if err := l.recordHalves(ctx, decisions, nil, out); err != nil {
		return err
	}
	if len(out.SetAside) > 0 {
		rest.forgetList() // the effects of what is set aside were seen and are not stored
	}
	if rest.empty() {
		return nil
	}
	return l.recordRest(ctx, rest, nil, out)
}

// recordHalves finds the rows that cannot be stored by halving. Each part is a
// transaction of its own; what is bad alone is set aside. The cause is why just these
// decisions were refused; nil: they were not tried.
func (l *Ledger) recordHalves(ctx context.Context, b Batch, cause error, out *Recorded) error {
	if len(b.Decisions) == 1 && cause != nil {
		return l.aside(ctx, b, cause, out)
	}
	for _, half := range b.halves() {
		once, err := l.recordOnce(ctx, half)
		switch {
		case err == nil:
			out.add(once)
		case !isKind(err, FaultData):
			return err
		default:
			if err := l.recordHalves(ctx, half, err, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Ledger) aside(ctx context.Context, b Batch, cause error, out *Recorded) error {
	id := b.Decisions[0].Operation
	n, err := l.SetAside(ctx, id, b.Now, cause.Error())
	if err != nil {
		return err
	}
	out.SetAside = append(out.SetAside, SetAside{Operation: id, Fault: cause.Error(), Failures: n})
	return nil
}

// recordRest stores what belongs to no decision. An effect that cannot be stored
// must not keep the others from the shelf: each is tried alone and the bad ones are
// left out. They are listed again by the next look, and never concluded from; that the
// range in which they lie was seen is not recorded, since what is stored is not all of it.
func (l *Ledger) recordRest(ctx context.Context, b Batch, cause error, out *Recorded) error {
	if cause == nil {
		var once Recorded
		if once, cause = l.recordOnce(ctx, b); cause == nil {
			out.add(once)
			return nil
		}
		if !isKind(cause, FaultData) {
			return cause
		}
	}
	if len(b.Effects) == 0 {
		return cause
	}
	b.forgetList()
	if len(b.Effects) == 1 {
		out.LeftOut = append(out.LeftOut, b.Effects[0].Identity())
		b.Effects, b.Raw = nil, nil
		once, err := l.recordOnce(ctx, b)
		out.add(once)
		return err
	}
	left, right := b, Batch{Hold: b.Hold, RunID: b.RunID, Now: b.Now, SeenBy: b.SeenBy}
	half := len(b.Effects) / 2
	left.Effects, right.Effects = b.Effects[:half], b.Effects[half:]
	left.Raw, right.Raw = rawOf(b.Raw, left.Effects), rawOf(b.Raw, right.Effects)
	right.Looks = b.Looks
	if err := l.recordRest(ctx, left, nil, out); err != nil {
		return err
	}
	return l.recordRest(ctx, right, nil, out)
}

// forgetList leaves out what says how far a list was seen: the next run begins before
// what could not be stored.
func (b *Batch) forgetList() { b.Coverage, b.List = nil, nil }

func (b *Batch) empty() bool {
	return len(b.Looks) == 0 && len(b.Effects) == 0 && len(b.Coverage) == 0 && len(b.Findings) == 0 && len(b.Ends) == 0 &&
		b.SourceState == nil && b.List == nil
}

// apart splits what rests on decisions from what stands by itself.
func (b *Batch) apart() (rest, decisions Batch) {
	decisions = b.only(b.Decisions)
	rest = *b
	rest.Decisions, rest.Versions, rest.Effects, rest.Raw, rest.Looks = nil, nil, nil, nil, nil
	used := map[recon.EffectIdentity]bool{}
	for _, e := range decisions.Effects {
		used[e.Identity()] = true
	}
	for _, e := range b.Effects {
		if !used[e.Identity()] {
			rest.Effects = append(rest.Effects, e)
		}
	}
	rest.Raw = rawOf(b.Raw, rest.Effects)
	lookUsed := map[string]bool{}
	for _, k := range decisions.Looks {
		lookUsed[k.ID] = true
	}
	for _, k := range b.Looks {
		if !lookUsed[k.ID] {
			rest.Looks = append(rest.Looks, k)
		}
	}
	return rest, decisions
}

// halves gives the two halves of a batch's decisions, each with its own evidence.
func (b *Batch) halves() []Batch {
	if len(b.Decisions) < 2 {
		return []Batch{*b}
	}
	half := len(b.Decisions) / 2
	return []Batch{b.only(b.Decisions[:half]), b.only(b.Decisions[half:])}
}

// only gives the part of a batch that some decisions need: their looks, and the effects
// that they link.
func (b *Batch) only(ds []recon.Decision) Batch {
	out := Batch{Hold: b.Hold, RunID: b.RunID, Now: b.Now, SeenBy: b.SeenBy, Decisions: ds, Versions: b.Versions}
	linked, looked := map[recon.EffectIdentity]bool{}, map[string]bool{}
	for _, d := range ds {
		for _, m := range d.Links {
			linked[m.Effect] = true
		}
		for _, id := range d.LookIDs {
			looked[id] = true
		}
	}
	for _, e := range b.Effects {
		if linked[e.Identity()] {
			out.Effects = append(out.Effects, e)
		}
	}
	for _, k := range b.Looks {
		if looked[k.ID] {
			out.Looks = append(out.Looks, k)
		}
	}
	out.Raw = rawOf(b.Raw, out.Effects)
	return out
}

func rawOf(raw []Raw, effects []recon.Effect) []Raw {
	want := make(map[recon.EffectIdentity]bool, len(effects))
	for _, e := range effects {
		want[e.Identity()] = true
	}
	var out []Raw
	for _, r := range raw {
		if want[r.Effect] {
			out = append(out, r)
		}
	}
	return out
}

// The operation's row is locked, as by every writer of its plan.
const lockCheckSQL = `
SELECT c.failures, c.source
FROM reconciler.operations o
JOIN reconciler.checks c ON c.tenant = $1 AND c.operation_id = o.operation_id
WHERE o.tenant = $1 AND o.operation_id = $2
FOR NO KEY UPDATE OF o`

const setAsideSQL = `
UPDATE reconciler.checks c SET failures = $3, next_check = $4 WHERE c.tenant = $1 AND c.operation_id = $2`

// SetAside counts a failure of one operation and plans its next try later each time.
// After five a finding names the fault. The fault is told to people: it holds no
// secret and no personal data. It returns the failures so far.
func (l *Ledger) SetAside(ctx context.Context, id recon.OperationID, now time.Time, fault string) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var failures int
	err := l.inTx(ctx, func(tx pgx.Tx) error {
		var source recon.SourceName
		err := tx.QueryRow(ctx, lockCheckSQL, l.tenant, string(id)).Scan(&failures, text(&source))
		if isNoRows(err) {
			return &NotFoundError{What: "operation", ID: string(id)}
		}
		if err != nil {
			return err
		}
		failures++
		next := now.Add(setAsideWaits[min(failures, len(setAsideWaits))-1])
		if _, err := tx.Exec(ctx, setAsideSQL, l.tenant, string(id), failures, stored(next)); err != nil {
			return err
		}
		if failures < failuresToTell {
			return nil
		}
		f := recon.Finding{
			Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{id},
			Observed: []recon.Difference{{Field: "recording", Ours: "concluded", Theirs: fault}},
			Reason:   "what was concluded of it cannot be stored: " + fault,
		}
		var one pgx.Batch
		if _, err := l.saveFindings(&one, tellings{findings: map[string]recon.Finding{f.Fingerprint(): f}}, now); err != nil {
			return err
		}
		return send(ctx, tx, &one)
	})
	return failures, l.fault("set an operation aside", err)
}
