package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// downAfter is how many blind answers in a row make a source down: one may be a
	// hiccup, and asking 10,000 operations of a dead provider helps nobody.
	downAfter = 2
	// A source that is down is probed after firstProbe, then after twice as long each
	// time, at most maxProbe.
	firstProbe = 30 * time.Second
	maxProbe   = 10 * time.Minute
)

// down reports whether a source is not asked for its operations.
func down(st ledger.SourceState) bool { return st.Blinds >= downAfter }

// afterBlind is the state after one more answer that told nothing.
func afterBlind(st ledger.SourceState, now time.Time) ledger.SourceState {
	if st.BlindSince.IsZero() || st.BlindSince.After(now) {
		st.BlindSince = now
	}
	st.Blinds++
	if down(st) {
		st.ProbeAt = now.Add(probeWait(st.Blinds - downAfter))
	}
	return st
}

// probeWait doubles with every probe that failed.
func probeWait(failed int) time.Duration {
	wait := firstProbe
	for range failed {
		if wait *= 2; wait >= maxProbe {
			return maxProbe
		}
	}
	return wait
}

// blindAnswer reports whether an answer told nothing at all, and the last look that
// says why. Looks for a place or a kind that is none of the source's say nothing about
// the provider; a key that opens another account than the configured one does.
func blindAnswer(a sources.Answer, sheet recon.Sheet) (last recon.Look, blind bool) {
	for _, l := range a.Looks {
		switch {
		case l.Outcome != recon.Blind:
			return recon.Look{}, false
		case l.Fault != string(sources.Unsupported) && sheet.Has(l.Account, l.Mode):
			last, blind = l, true
		}
	}
	return last, blind
}

// blindReason says why operations of this run could not be looked at; nothing when all
// could be.
func (p *pass) blindReason() string {
	switch {
	case p.out.Blind == 0:
		return ""
	case p.fault != "" && p.detail != "":
		return fmt.Sprintf("%s (%s)", recon.FaultText(p.fault), p.detail)
	case p.fault != "":
		return recon.FaultText(p.fault)
	case down(p.state):
		return fmt.Sprintf("it does not answer since %s and is asked again at %s",
			recon.TimeText(p.state.BlindSince, time.UTC), recon.TimeText(p.state.ProbeAt, time.UTC))
	}
	return ""
}

// probeDue reports whether a source that is down is asked now whether it is back. A
// probe that is planned later than any is was planned by a clock that ran ahead, such as
// a --now in the future, and must not keep the source unasked until then.
func probeDue(st ledger.SourceState, now time.Time) bool {
	return down(st) && (!now.Before(st.ProbeAt) || st.ProbeAt.Sub(now) > maxProbe)
}

// probe asks a source that is down whether it is back, when that is due, and records
// the answer. So it is known again also while nothing is due.
func (p *pass) probe(ctx context.Context) error {
	now := p.options.Now()
	if !probeDue(p.state, now) {
		return nil
	}
	err := p.Source.Probe(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.out.ProviderCalls++
	if p.Watch.Probed != nil {
		p.Watch.Probed(p.out.Source, err)
	}
	if err == nil {
		p.state = ledger.SourceState{}
	} else {
		p.fault, p.detail = faultOf(err)
		p.state = afterBlind(p.state, now)
	}
	if err := p.recordHealth(ctx); err != nil {
		return err
	}
	return p.step("probe")
}

// recordHealth records what was heard of the source while no operation was asked for: with
// operations it stands in their batch.
func (p *pass) recordHealth(ctx context.Context) error {
	batch := ledger.Batch{Hold: p.held(), RunID: p.run.ID, Now: p.options.Now()}
	p.tellHealth(&batch)
	recorded, err := p.Ledger.Record(ctx, batch)
	if err != nil {
		return fmt.Errorf("record whether %s answers: %w", p.out.Source, err)
	}
	p.remember(recorded)
	return nil
}

// tellHealth puts what changed about the source into a batch: its state, the finding
// once it has been blind for too long, and the end of it.
func (p *pass) tellHealth(b *ledger.Batch) {
	if p.state != p.told {
		state := p.state
		b.SourceState = &state
	}
	finding := p.blindFinding()
	switch {
	case p.state.BlindSince.IsZero():
		if !p.told.BlindSince.IsZero() {
			b.Ends = append(b.Ends, finding.Fingerprint())
		}
	case b.Now.Sub(p.state.BlindSince) >= p.blindAfter():
		b.Findings = append(b.Findings, finding)
	}
}

// blindFinding is about the source alone, so that one outage is one finding however
// many operations wait for it.
func (p *pass) blindFinding() recon.Finding {
	why := "it does not answer"
	if p.fault != "" {
		why = recon.FaultText(p.fault)
	}
	return recon.Finding{
		Kind: recon.FindBlind, Certainty: recon.Proof, Source: p.out.Source,
		Reason: fmt.Sprintf("%s could not be asked since %s: %s", p.out.Source, recon.TimeText(p.state.BlindSince, time.UTC), why),
	}
}

func (p *pass) blindAfter() time.Duration {
	if p.BlindAfter > 0 {
		return p.BlindAfter
	}
	return defaultBlindAfter
}

// faultOf names the kind of fault of an error of a source, and what happened.
func faultOf(err error) (kind, detail string) {
	var fault *sources.Error
	switch {
	case !errors.As(err, &fault):
		return string(sources.Unavailable), ""
	case fault.Err == nil:
		return string(fault.Kind), fault.Op
	}
	return string(fault.Kind), fault.Op + ": " + fault.Err.Error()
}
