package sweep

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// judged is one operation as a pass found it and what the pass decided.
type judged struct {
	Case     recon.Case
	Decision recon.Decision
}

// verdicts are the judged operations of a batch, and those that could not be judged.
type verdicts struct {
	judged []judged
	looks  []recon.Look // evidence that no source gave just now: what was stored
	faults map[recon.OperationID]error
}

// judge pairs and decides. It is pure: everything it needs was heard.
func (p *pass) judge(h heard) verdicts {
	v := verdicts{looks: h.stored, faults: map[recon.OperationID]error{}}
	looks := h.seen.narrow(append(p.lists[:len(p.lists):len(p.lists)], h.answer.Looks...))
	seers := h.seen.seers()
	for _, c := range pair(h.cases, h.seen.effects, h.seen.owners) {
		if d, ok := h.settled[c.Operation.ID]; ok {
			v.judged = append(v.judged, judged{Case: c, Decision: d})
			continue
		}
		c.Looks, c.Effects = about(c, looks, seers), takenBack(c, h.lost)
		d, err := p.decided(c, h.at)
		if err != nil {
			v.faults[c.Operation.ID] = err
			continue
		}
		v.judged = append(v.judged, judged{Case: c, Decision: p.folded(c, d)})
	}
	v.looks = append(v.looks[:len(v.looks):len(v.looks)], testimonies(v.judged)...)
	return v
}

// folded leaves it to the one finding of a source that does not answer to say that its
// operations are not known: ten thousand of their own would say nothing more. They are
// raised when it answers again and still does not know.
func (p *pass) folded(c recon.Case, d recon.Decision) recon.Decision {
	if p.state.Blinds == 0 || !d.Blind || d.From != d.To {
		return d
	}
	told := map[string]bool{}
	for _, f := range c.Findings {
		told[f.Fingerprint()] = true
	}
	d.Findings = slices.DeleteFunc(slices.Clone(d.Findings), func(f recon.Finding) bool {
		return f.Kind == recon.FindUnresolved && !told[f.Fingerprint()]
	})
	return d
}

// about gives the looks that asked where the operation's effect would be, and those that
// found what it is paired with, for whichever batch of the run they asked. An operation whose
// account is not known is covered by no look; it still hears all of its kind, so that what
// they found is found.
func about(c recon.Case, looks []recon.Look, seers map[recon.EffectIdentity][]recon.Look) []recon.Look {
	var list []recon.Look
	here := map[string]bool{}
	add := func(l recon.Look) {
		if !here[l.ID] {
			here[l.ID] = true
			list = append(list, l)
		}
	}
	for _, l := range looks {
		if l.Covers(c.Operation, c.Policy.Effect) || c.Operation.Account == "" && l.Kind == c.Policy.Effect {
			add(l)
		}
	}
	for _, m := range c.Matches {
		for _, l := range seers[m.Effect] {
			add(l)
		}
	}
	return list
}

// record writes a batch with its evidence in one transaction, and counts what became
// of it.
func (p *pass) record(ctx context.Context, h heard, v verdicts) error {
	b := ledger.Batch{
		Hold: p.held(), RunID: p.run.ID, Now: h.at,
		Looks: append(v.looks, h.answer.Looks...), SeenBy: h.seen.by, Effects: h.seen.effects, Raw: h.seen.raw,
		Versions: make(map[recon.OperationID]int64, len(v.judged)),
	}
	for _, l := range h.answer.Looks {
		if hasSpan(l) {
			p.covered = append(p.covered, coverageOf(l))
		}
	}
	if p.shelf.empty() {
		b.Coverage, p.covered = p.covered, nil
	}
	for i := range v.judged {
		j := &v.judged[i]
		b.Decisions = append(b.Decisions, j.Decision)
		b.Versions[j.Decision.Operation] = j.Case.Operation.Version
	}
	p.tellHealth(&b)
	recorded, err := p.Ledger.Record(ctx, b)
	if err != nil {
		return fmt.Errorf("record a batch of %d operations: %w", len(b.Decisions), err)
	}
	for id, fault := range v.faults {
		if _, err := p.Ledger.SetAside(ctx, id, h.at, fault.Error()); err != nil {
			return fmt.Errorf("set aside operation %s (%w): %w", id, fault, err)
		}
		p.past[id] = true
		p.out.Claimed++
		p.out.SetAside++
	}
	p.uncover(recorded)
	p.shelf.back(h.seen, refused(recorded, b.Decisions))
	p.remember(recorded)
	p.count(v.judged, recorded)
	return p.step("record")
}

// coverageOf is the range that a complete list answers for.
func coverageOf(l recon.Look) recon.Coverage {
	return recon.Coverage{Source: l.Source, Kind: l.Kind, Account: l.Account, Mode: l.Mode, Window: l.Window, At: l.At, LookID: l.ID}
}

// shelve records what the run has seen and no operation took: an effect that waits for
// its operation, or has none.
func (p *pass) shelve(ctx context.Context) error {
	pieces := p.shelf.rest(p.batchSize())
	for n, piece := range pieces {
		b := ledger.Batch{
			Hold: p.held(), RunID: p.run.ID, Now: p.options.Now(),
			SeenBy: piece.by, Effects: piece.effects, Raw: piece.raw,
		}
		if n == len(pieces)-1 {
			b.Coverage = p.covered
		}
		recorded, err := p.Ledger.Record(ctx, b)
		if err != nil {
			return fmt.Errorf("record %d effects that no operation took: %w", len(piece.effects), err)
		}
		p.uncover(recorded)
		if len(recorded.LeftOut) > 0 {
			p.log().WarnContext(ctx, "the ledger cannot store what the source shows", "source", p.out.Source, "effects", idsOf(recorded.LeftOut))
		}
		if err := p.step("shelve"); err != nil {
			return err
		}
	}
	return nil
}

// uncover forgets what the lists so far answer for where something that they may have
// shown could not be stored.
func (p *pass) uncover(r ledger.Recorded) {
	if len(r.SetAside) > 0 || len(r.LeftOut) > 0 {
		p.covered = nil
	}
}

// idsOf names effects in what people read: the first few of many.
func idsOf(list []recon.EffectIdentity) string {
	const most = 5
	var ids []string
	for _, id := range list[:min(len(list), most)] {
		ids = append(ids, recon.Printable(id.ID))
	}
	if more := len(list) - most; more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

// refused are the effects that a batch was not stored with: those that were left out, and
// those of the decisions that were set aside.
func refused(r ledger.Recorded, all []recon.Decision) []recon.EffectIdentity {
	ids := slices.Clone(r.LeftOut)
	for _, d := range all {
		if slices.ContainsFunc(r.SetAside, func(s ledger.SetAside) bool { return s.Operation == d.Operation }) {
			for _, m := range d.Links {
				ids = append(ids, m.Effect)
			}
		}
	}
	return ids
}

// remember takes what a recorded batch says of the run as a whole.
func (p *pass) remember(r ledger.Recorded) {
	p.told = p.state
	for kind, n := range r.Opened {
		if n > 0 {
			p.out.Findings[kind] += n
		}
	}
}

// count puts every operation of a batch into exactly one of the eight classes.
func (p *pass) count(all []judged, r ledger.Recorded) {
	fate := make(map[recon.OperationID]*int, len(r.Lost)+len(r.Kept)+len(r.SetAside))
	for _, id := range r.Lost {
		fate[id] = &p.out.Lost
		p.past[id] = true
	}
	for _, k := range r.Kept {
		fate[k.Operation] = &p.out.Kept
		p.past[k.Operation] = true
	}
	for _, s := range r.SetAside {
		fate[s.Operation] = &p.out.SetAside
		p.past[s.Operation] = true
	}
	for _, j := range all {
		n, decided := fate[j.Decision.Operation], false
		if n == nil {
			n, decided = p.class(j.Decision), true
		}
		*n++
		p.out.Claimed++
		if decided && capped(j.Decision) {
			p.changed++
		}
		if p.Watch.Judged != nil {
			p.Watch.Judged(j.Case, j.Decision)
		}
	}
}

// class is where a decision that was recorded is counted.
func (p *pass) class(d recon.Decision) *int {
	switch {
	case d.Release:
		return &p.out.Released
	case d.From == d.To && d.Blind:
		return &p.out.Blind
	case d.From == d.To, d.To == recon.Unknown, d.To == recon.InProgress:
		return &p.out.Kept
	case d.To == recon.Succeeded:
		return &p.out.Succeeded
	case d.To == recon.Failed:
		return &p.out.Failed
	case d.To == recon.ManualReview:
		return &p.out.ManualReview
	}
	return &p.out.Kept
}
