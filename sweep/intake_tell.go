package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Conclusions is what concluding from stored effects asks of the ledger.
type Conclusions interface {
	Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error)
	Named(ctx context.Context, effects []recon.Effect) ([]recon.OperationID, error)
	Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error)
	Record(ctx context.Context, b ledger.Batch) (ledger.Recorded, error)
	CheckNow(ctx context.Context, ids []recon.OperationID, now time.Time) error
	Wake(ctx context.Context, ids []recon.OperationID, now time.Time) error
	WantReadings(ctx context.Context, list []ledger.Reading, now time.Time) error
}

// onEffects are the rules whose conclusion rests on the effects that are there, whoever
// showed them. All others rest on what was asked and not found, or on time, and are left
// to a sweep that asks.
var onEffects = []string{"conflict", "mismatch", "duplicate", "found", "in_flight", "reversed", "failed_effects"}

// raceTries is how often an operation that another writer changed first is judged anew
// before it is left to the next sweep.
const raceTries = 3

// teller concludes operations from stored effects alone. It asks no source and needs no
// hold: the version of each operation guards it.
type teller struct {
	ledger  Conclusions
	sheet   func(recon.SourceName) (recon.Sheet, bool)
	decided func(recon.Case, time.Time) (recon.Decision, error)
	judged  func(recon.Case, recon.Decision)
	hold    func() ledger.Hold // of what is recorded with it; zero for none
	runID   string
	limit   func(verdicts) error // refuses what one run may not change; nil: nothing does
}

// concluded is what became of the operations that were judged.
type concluded struct {
	matched map[recon.EffectIdentity]bool // effects that belong to an operation
	left    []recon.Case                  // only asking tells more
	changed []judged                      // recorded
	opened  map[recon.FindingKind]int
}

// concerned gives the operations that effects belong to or name.
func concerned(ctx context.Context, l Conclusions, effects []recon.Effect) ([]recon.OperationID, error) {
	if len(effects) == 0 {
		return nil, nil
	}
	ids := make([]recon.EffectIdentity, 0, len(effects))
	for _, e := range effects {
		ids = append(ids, e.Identity())
	}
	owners, err := l.Owners(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read whose effects are: %w", err)
	}
	all := slices.Clone(effects)
	for id, owner := range owners { // an operation or a group, as a reference is
		all = append(all, recon.Effect{ID: id.ID, Reference: owner})
	}
	named, err := l.Named(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("find the operations that effects name: %w", err)
	}
	return named, nil
}

// conclude judges operations by what is stored of their effects, and by the looks that
// told of them just now, and records what follows. What cannot be concluded is left to asking.
func (t *teller) conclude(ctx context.Context, ids []recon.OperationID, looks []recon.Look, now time.Time) (concluded, error) {
	out := concluded{matched: map[recon.EffectIdentity]bool{}, opened: map[recon.FindingKind]int{}}
	for piece := range slices.Chunk(ids, defaultBatch) {
		for try := 1; len(piece) > 0; try++ {
			cases, err := t.ledger.Cases(ctx, piece)
			if err != nil {
				return out, fmt.Errorf("read the operations that effects name: %w", err)
			}
			v, left := t.judge(cases, looks, now, out.matched)
			if try > raceTries {
				left, v.judged = cases, nil // too busy: the next sweep looks at them
			}
			if t.limit != nil {
				if err := t.limit(v); err != nil {
					return out, err
				}
			}
			lost, err := t.record(ctx, v, now, &out)
			if err != nil {
				return out, err
			}
			if err := t.leave(ctx, left, now, &out); err != nil {
				return out, err
			}
			piece = lost
		}
	}
	return out, nil
}

// judge pairs and decides. It gives what is to be recorded, and what is left to asking.
func (t *teller) judge(cases []recon.Case, looks []recon.Look, now time.Time, matched map[recon.EffectIdentity]bool) (v verdicts, left []recon.Case) {
	var known []recon.Case
	for _, c := range cases {
		if sheet, ok := t.sheet(c.Operation.Source); ok {
			c.Sheet = sheet
			known = append(known, c)
		}
	}
	for _, c := range pair(known, nil, nil) {
		mine, doubt := belonging(c)
		for _, id := range mine {
			matched[id] = true
		}
		if len(mine) == 0 {
			continue
		}
		var err error
		if c.Looks, err = evidence(c, mine, looks, now); err != nil {
			left = append(left, c)
			continue
		}
		d, err := t.decision(c, now)
		switch {
		case doubt, err != nil, !slices.Contains(onEffects, d.Rule):
			left = append(left, c)
		case d.Changes():
			d.Ends = append(d.Ends, noOrphans(c, d)...)
			v.judged = append(v.judged, judged{Case: c, Decision: d})
			v.looks = append(v.looks, c.Looks...)
		}
	}
	return v, left
}

// noOrphans gives the fingerprints by which effects would have been told as orphans that
// have an operation now.
func noOrphans(c recon.Case, d recon.Decision) []string {
	var prints []string
	for _, e := range c.Effects {
		if e.Owner == "" && slices.ContainsFunc(d.Links, func(m recon.Match) bool { return m.Effect == e.Identity() }) {
			prints = append(prints, rules.Orphan(e, nil).Fingerprint())
		}
	}
	return prints
}

// belonging gives the effects that belong to the operation, and whether one of them is in
// doubt.
func belonging(c recon.Case) (mine []recon.EffectIdentity, doubt bool) {
	for _, m := range c.Matches {
		if m.Certainty == recon.Proof || m.Certainty == recon.StrongSign {
			mine = append(mine, m.Effect)
		}
	}
	for _, e := range c.Effects {
		doubt = doubt || e.NeedsRead && slices.Contains(mine, e.Identity())
	}
	return mine, doubt
}

// evidence gives the looks that told of an operation's effects just now, else that they
// are stored, and those that asked for the one that it knows and may have told that it is not
// there.
func evidence(c recon.Case, mine []recon.EffectIdentity, looks []recon.Look, now time.Time) ([]recon.Look, error) {
	var list []recon.Look
	told := false
	for _, l := range looks {
		saw := slices.ContainsFunc(l.Found, func(id recon.EffectIdentity) bool { return slices.Contains(mine, id) })
		if saw || l.EffectID != "" && l.Covers(c.Operation, c.Policy.Effect) {
			list, told = append(list, l), told || saw
		}
	}
	if told {
		return list, nil
	}
	look, err := storedLook(c, now)
	return append(list, look), err
}

// decision judges one case by the looks that it has. Where nothing changes its state
// nobody was asked: no look was blind, and the plan stands.
func (t *teller) decision(c recon.Case, now time.Time) (recon.Decision, error) {
	d, err := t.decided(c, now)
	if err != nil || d.From != d.To {
		return d, err
	}
	d.Blind, d.Check, d.LookIDs = false, c.Check, nil
	for _, l := range c.Looks {
		d.LookIDs = append(d.LookIDs, l.ID)
	}
	return d, nil
}

// record writes decisions with their evidence, and gives those that another
// writer was faster on.
func (t *teller) record(ctx context.Context, v verdicts, now time.Time, out *concluded) (lost []recon.OperationID, err error) {
	if len(v.judged) == 0 {
		return nil, nil
	}
	b := ledger.Batch{
		Hold: t.hold(), RunID: t.runID, Now: now, Looks: v.looks,
		Versions: make(map[recon.OperationID]int64, len(v.judged)),
	}
	for _, j := range v.judged {
		b.Decisions = append(b.Decisions, j.Decision)
		b.Versions[j.Decision.Operation] = j.Case.Operation.Version
	}
	recorded, err := t.ledger.Record(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("record what effects conclude of %d operations: %w", len(b.Decisions), err)
	}
	for kind, n := range recorded.Opened {
		out.opened[kind] += n
	}
	notDone := map[recon.OperationID]bool{}
	for _, id := range recorded.Lost {
		notDone[id] = true
	}
	for _, s := range recorded.SetAside {
		notDone[s.Operation] = true
	}
	for _, j := range v.judged {
		if notDone[j.Decision.Operation] {
			continue
		}
		out.changed = append(out.changed, j)
		if t.judged != nil {
			t.judged(j.Case, j.Decision)
		}
	}
	return recorded.Lost, nil
}

// leave sees to it that what only asking can tell more of is asked for: open operations by the
// next sweep. Of closed ones these are those that know an effect that nobody has seen, so that
// what was seen may be a second one. That effect is read by the next sweep where its id is
// enough, and whatever that tells, the next re-verification asks with all that is known.
func (t *teller) leave(ctx context.Context, left []recon.Case, now time.Time, out *concluded) error {
	var open, closed []recon.OperationID
	var known []ledger.Reading
	for _, c := range left {
		switch o := &c.Operation; {
		case o.State.Open():
			open, out.left = append(open, o.ID), append(out.left, c)
		case unseen(c):
			closed = append(closed, o.ID)
			if sheet, ok := t.sheet(o.Source); ok && readable(sheet, o) {
				known, out.left = append(known, ledger.Reading{
					Source: o.Source, Kind: c.Policy.Effect, Account: o.Account, Mode: o.Mode, EffectID: o.EffectID, From: o.FirstPossible(),
				}), append(out.left, c)
			}
		}
	}
	if err := t.ledger.CheckNow(ctx, open, now); err != nil {
		return fmt.Errorf("leave %d operations to the next sweep: %w", len(open), err)
	}
	if err := t.ledger.Wake(ctx, closed, now); err != nil {
		return fmt.Errorf("leave %d operations to the next re-verification: %w", len(closed), err)
	}
	if err := t.ledger.WantReadings(ctx, known, now); err != nil {
		return fmt.Errorf("leave %d known effects to the next sweep: %w", len(known), err)
	}
	return nil
}

// unseen reports whether an operation knows an effect that the ledger does not have, and none of
// its looks just asked for.
func unseen(c recon.Case) bool {
	id := c.Operation.EffectID
	return id != "" &&
		!slices.ContainsFunc(c.Effects, func(e recon.Effect) bool { return e.ID == id }) &&
		!slices.ContainsFunc(c.Looks, func(l recon.Look) bool { return l.EffectID == id })
}

// readable reports whether a source can be asked for an operation's effect by its id alone.
func readable(sheet recon.Sheet, o *recon.Operation) bool {
	_, can := sheet.Ability(recon.ByID)
	return can && o.Account != ""
}

// store saves what was shown of effects, with the looks that are its evidence. The ledger
// decides what each telling is worth against what it has. It gives those that the database
// refuses.
func (t *teller) store(ctx context.Context, effects []recon.Effect, raw []sources.Raw, looks []recon.Look, now time.Time) ([]recon.EffectIdentity, error) {
	if len(looks) == 0 {
		return nil, nil
	}
	b := ledger.Batch{Hold: t.hold(), RunID: t.runID, Now: now, Looks: looks, Effects: effects}
	for _, r := range raw {
		b.Raw = append(b.Raw, ledger.Raw(r))
	}
	for _, l := range looks {
		if hasSpan(l) {
			b.Coverage = append(b.Coverage, coverageOf(l))
		}
	}
	recorded, err := t.ledger.Record(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("store %d effects: %w", len(effects), err)
	}
	return recorded.LeftOut, nil
}
