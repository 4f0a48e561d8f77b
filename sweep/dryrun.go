package sweep

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxDry bounds a dry run: it holds all that is due at once, because nothing that it
// judges stops being due.
const maxDry = 10_000

// Dry reads from a ledger and writes nothing: no run, no hold, no conclusion. The
// sweep that runs on it is the same, so what it tells is what a real one would do,
// but for operations whose lease is over: they are judged once they are unknown.
//
// It serves one run.
type Dry struct {
	real Reader
	due  []recon.Case
	read bool
	seen []recon.Effect // what a real run would have stored by now
}

// Reader is what a dry run reads.
type Reader interface {
	SourceState(ctx context.Context, source recon.SourceName) (ledger.SourceState, error)
	Due(ctx context.Context, s ledger.Scope, now time.Time, limit int) ([]recon.Case, error)
	Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error)
	TakenBack(ctx context.Context, effects []recon.Effect) ([]recon.Effect, error)
}

var _ Ledger = (*Dry)(nil)

// NewDry makes the ledger of one dry run.
func NewDry(real Reader) *Dry { return &Dry{real: real} }

// BeginRun takes no place: a dry run disturbs no other.
func (d *Dry) BeginRun(_ context.Context, s ledger.RunStart) (ledger.Run, error) {
	return ledger.Run{Name: s.Name, Tick: s.Tick, Holder: s.Holder}, nil
}

// HeartbeatRun does nothing.
func (d *Dry) HeartbeatRun(_ context.Context, r ledger.Run, _ time.Duration) (ledger.Run, error) {
	return r, nil
}

// FinishRun does nothing.
func (d *Dry) FinishRun(context.Context, ledger.Run, ledger.RunEnd) error { return nil }

// HoldSource takes nothing.
func (d *Dry) HoldSource(_ context.Context, source recon.SourceName, holder string, _ time.Duration) (ledger.Hold, error) {
	return ledger.Hold{Source: source, Holder: holder}, nil
}

// RenewSource does nothing.
func (d *Dry) RenewSource(_ context.Context, h ledger.Hold, _ time.Duration) (ledger.Hold, error) {
	return h, nil
}

// ReleaseSource does nothing.
func (d *Dry) ReleaseSource(context.Context, ledger.Hold) error { return nil }

// SourceState reads what is remembered of the source.
func (d *Dry) SourceState(ctx context.Context, source recon.SourceName) (ledger.SourceState, error) {
	return d.real.SourceState(ctx, source)
}

// ExpireLeases expires none.
func (d *Dry) ExpireLeases(context.Context, recon.SourceName, time.Time, int) (int, error) {
	return 0, nil
}

// Due reads what is due once and hands it out in pieces.
func (d *Dry) Due(ctx context.Context, s ledger.Scope, now time.Time, limit int) ([]recon.Case, error) {
	if !d.read {
		due, err := d.real.Due(ctx, s, now, maxDry)
		if err != nil {
			return nil, err
		}
		d.due, d.read = due, true
	}
	n := min(limit, len(d.due))
	piece := d.due[:n]
	d.due = d.due[n:]
	for i := range piece {
		piece[i].Effects = append(piece[i].Effects, d.learned(piece[i])...)
	}
	return piece, nil
}

// learned gives the effects of earlier batches that a real ledger would now give with
// the case.
func (d *Dry) learned(c recon.Case) []recon.Effect {
	have := map[recon.EffectIdentity]bool{}
	for _, e := range c.Effects {
		have[e.Identity()] = true
	}
	o := c.Operation
	var list []recon.Effect
	for _, e := range d.seen {
		named := e.Reference == string(o.ID) || e.Key != "" && e.Key == o.Key || e.ID == o.EffectID
		alike := o.Parent != "" && e.Under(o.Parent) && e.Money == o.Money
		if (named || alike) && !have[e.Identity()] {
			list = append(list, e)
		}
	}
	return list
}

// Owners reads whose effects are.
func (d *Dry) Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error) {
	return d.real.Owners(ctx, ids)
}

// TakenBack reads what took effects back.
func (d *Dry) TakenBack(ctx context.Context, effects []recon.Effect) ([]recon.Effect, error) {
	return d.real.TakenBack(ctx, effects)
}

// Record remembers the effects and counts the findings that the batch would open. It
// writes nothing.
func (d *Dry) Record(_ context.Context, b ledger.Batch) (ledger.Recorded, error) {
	r := ledger.Recorded{Opened: map[recon.FindingKind]int{}, Ended: map[recon.FindingKind]int{}}
	d.seen = append(d.seen, b.Effects...)
	seen := map[string]bool{}
	count := func(f recon.Finding) {
		if !seen[f.Fingerprint()] {
			seen[f.Fingerprint()] = true
			r.Opened[f.Kind]++
		}
	}
	for _, f := range b.Findings {
		count(f)
	}
	for _, dec := range b.Decisions {
		for _, f := range dec.Findings {
			count(f)
		}
	}
	return r, nil
}

// SetAside sets nothing aside.
func (d *Dry) SetAside(context.Context, recon.OperationID, time.Time, string) (int, error) {
	return 0, nil
}

// Readings gives none: what events told of is read by a real run.
func (d *Dry) Readings(context.Context, recon.SourceName, time.Time, int) ([]ledger.Reading, error) {
	return nil, nil
}

// WantReadings asks for none.
func (d *Dry) WantReadings(context.Context, []ledger.Reading, time.Time) error { return nil }

// FinishReadings ends none.
func (d *Dry) FinishReadings(context.Context, ledger.Read, time.Time) error { return nil }

// Named names none: without readings nobody asks.
func (d *Dry) Named(context.Context, []recon.Effect) ([]recon.OperationID, error) { return nil, nil }

// Cases gives none, as Named.
func (d *Dry) Cases(context.Context, []recon.OperationID) ([]recon.Case, error) { return nil, nil }

// CheckNow makes nothing due.
func (d *Dry) CheckNow(context.Context, []recon.OperationID, time.Time) error { return nil }

// Wake makes nothing due, either.
func (d *Dry) Wake(context.Context, []recon.OperationID, time.Time) error { return nil }
