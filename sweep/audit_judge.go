package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

const (
	// auditChunk is how many effects of a window one statement walks over.
	auditChunk = 20_000
	// maxOdd bounds the ids of operations to be judged that are held at a time.
	maxOdd = 500_000
)

// accounted is one operation with its class and what follows for it.
type accounted struct {
	kase     recon.Case
	judged   rules.Judged
	decision recon.Decision
	write    bool // the decision says something that the ledger does not know
	stored   *recon.Look
}

// operations puts every operation of the window into its class. Nearly all are plain: the
// database says so by itself, and only the others are read and judged.
func (u *audit) operations(ctx context.Context) error {
	if err := u.survey(ctx); err != nil {
		return err
	}
	var after recon.OperationID
	for first := true; ; first = false {
		c, err := u.of.Accounts.AuditOperations(ctx, u.scope(), after, maxOdd)
		if err != nil {
			return err
		}
		if first {
			u.result.plain(c.Plain, c.PlainEffects)
			u.owned = c.Effects
		}
		for part := range slices.Chunk(c.Odd, u.batchSize()) {
			if err := u.judgeOperations(ctx, part); err != nil {
				return err
			}
		}
		if len(c.Odd) < maxOdd {
			return nil
		}
		after = c.Odd[len(c.Odd)-1]
	}
}

func (u *audit) chunkSize() int {
	if u.batch > 0 { // a test
		return u.batch
	}
	return auditChunk
}

// survey finds out what of the window was seen before the classes depend on it.
func (u *audit) survey(ctx context.Context) error {
	var err error
	if u.standing, err = u.of.Accounts.Coverage(ctx, ledger.AuditScope{Source: u.out.Source, Window: u.span.listed}); err != nil {
		return err
	}
	u.unseenBy()
	operations, _, err := u.of.Accounts.AuditAny(ctx, u.scope())
	if err != nil || !operations {
		return err
	}
	_, effects, err := u.of.Accounts.AuditAny(ctx, ledger.AuditScope{Source: u.out.Source, Window: u.span.listed})
	if u.empty = err == nil && !effects; u.empty {
		u.result.empty(u.span.counted)
	}
	return err
}

// judgeOperations accounts for some operations of the window, and for their effects.
func (u *audit) judgeOperations(ctx context.Context, ids []recon.OperationID) error {
	list, err := u.judgeThese(ctx, ids)
	if err != nil {
		return err
	}
	for i := range list {
		a := &list[i]
		if u.span.counted.Contains(a.kase.Operation.CreatedAt) {
			u.result.operation(a.judged.Class)
			u.result.happened(a.kase.Operation, a.judged)
		}
		for _, m := range a.kase.Matches {
			if e, bound := a.bound(m); bound && e.Source == u.out.Source && u.span.counted.Contains(e.CreatedAt) {
				u.result.effect(rules.LinkedClass(a.judged, e))
				if e.Owner == "" {
					u.counted[m.Effect] = true
				}
			}
			if m.Certainty == recon.Suggestion {
				u.hints[m.Effect] = append(u.hints[m.Effect], m)
			}
		}
	}
	return nil
}

// bound gives the effect of a match if it is this operation's alone, by now.
func (a *accounted) bound(m recon.Match) (recon.Effect, bool) {
	if m.Group != nil || !binds(m, a.kase.Operation) {
		return recon.Effect{}, false
	}
	e, known := effectOf(a.kase, m.Effect)
	mine := known && e.Owner == string(a.kase.Operation.ID)
	linked := a.write && slices.ContainsFunc(a.decision.Links, func(l recon.Match) bool { return l.Effect == m.Effect })
	return e, mine || linked
}

func effectOf(c recon.Case, id recon.EffectIdentity) (recon.Effect, bool) {
	i := slices.IndexFunc(c.Effects, func(e recon.Effect) bool { return e.Identity() == id })
	if i < 0 {
		return recon.Effect{}, false
	}
	return c.Effects[i], true
}

// judgeThese reads operations, judges them and records what follows.
func (u *audit) judgeThese(ctx context.Context, ids []recon.OperationID) ([]accounted, error) {
	cases, err := u.of.Accounts.Cases(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		cases[i].Sheet = u.Source.Sheet()
	}
	others, err := u.alsoNamed(ctx, cases)
	if err != nil {
		return nil, err
	}
	list := make([]accounted, 0, len(cases))
	faults := map[recon.OperationID]error{}
	paired := pair(append(cases, others...), nil, nil)[:len(cases)]
	if err := u.addRepayments(ctx, paired); err != nil {
		return nil, err
	}
	for _, c := range paired {
		a, err := u.judgeOne(c)
		if err != nil {
			faults[c.Operation.ID] = err
		}
		list = append(list, a)
	}
	return list, u.recordJudged(ctx, list, faults)
}

// addRepayments adds to operations with several effects what gave some of them back: a
// duplicate that was refunded is over.
func (u *audit) addRepayments(ctx context.Context, cases []recon.Case) error {
	var parents []string
	for _, c := range cases {
		if len(c.Matches) > 1 {
			for _, e := range c.Effects {
				parents = append(parents, e.ID)
			}
		}
	}
	if len(parents) == 0 {
		return nil
	}
	children, err := u.of.Accounts.Children(ctx, parents)
	for i := range cases {
		c := &cases[i]
		for _, e := range children {
			if len(c.Matches) > 1 && slices.ContainsFunc(c.Effects, func(of recon.Effect) bool { return e.Under(of.ID) }) {
				c.Effects = append(c.Effects, e)
			}
		}
	}
	return err
}

// alsoNamed gives the operations that the cases' effects name besides the cases: where an
// effect's identities disagree, whom else it names is a difference.
func (u *audit) alsoNamed(ctx context.Context, cases []recon.Case) ([]recon.Case, error) {
	here := make(map[recon.OperationID]bool, len(cases))
	var effects []recon.Effect
	for _, c := range cases {
		here[c.Operation.ID] = true
		effects = append(effects, c.Effects...)
	}
	if len(effects) == 0 {
		return nil, nil
	}
	named, err := u.of.Accounts.Named(ctx, effects)
	if err != nil {
		return nil, err
	}
	named = slices.DeleteFunc(named, func(id recon.OperationID) bool { return here[id] })
	if len(named) == 0 {
		return nil, nil
	}
	return u.of.Accounts.Cases(ctx, named)
}

// judgeOne sorts one operation and decides about it, by the same rules as a sweep.
func (u *audit) judgeOne(c recon.Case) (accounted, error) {
	place := u.placeOf(c)
	c.Looks = nil
	if place != rules.PlaceUnseen {
		c.Looks = about(c, u.seen, nil)
	}
	a := accounted{kase: c, judged: rules.Judge(c, u.at, place)}
	for _, id := range a.judged.Explained {
		u.explained[id] = true
	}
	if c.Operation.Source != u.out.Source || place == rules.PlaceUnseen && len(c.Matches) == 0 {
		return a, nil // nothing was seen of it here: that says nothing
	}
	if len(c.Matches) > 0 {
		look, err := storedLook(c, u.at)
		if err != nil {
			return a, err
		}
		a.stored = &look
		c.Looks = append(c.Looks, look)
	}
	d, err := u.decided(c, u.at)
	if err != nil {
		return a, err
	}
	d.Findings = append(d.Findings, u.alsoHolding(c, a.judged, d)...)
	d.Ends = slices.DeleteFunc(d.Ends, func(print string) bool {
		return slices.ContainsFunc(a.judged.Findings, func(f recon.Finding) bool { return f.Fingerprint() == print })
	})
	a.decision = d
	a.write = d.Changes() || d.Check.Absence.Looks != c.Check.Absence.Looks
	return a, nil
}

// alsoHolding are the findings that the class of an operation means and that the decision
// does not raise: a succeeded operation of which it is not known what was sent is missing
// in a complete place, and that alone changes no state.
func (u *audit) alsoHolding(c recon.Case, j rules.Judged, d recon.Decision) []recon.Finding {
	var also []recon.Finding
	for _, f := range j.Findings {
		print := f.Fingerprint()
		same := func(o recon.Finding) bool { return o.Fingerprint() == print }
		if !slices.ContainsFunc(d.Findings, same) && !slices.ContainsFunc(c.Findings, same) && !slices.ContainsFunc(c.Settled, same) {
			also = append(also, f)
		}
	}
	return also
}

// recordJudged writes what follows from judged operations, in one transaction, and tells
// the findings on them.
func (u *audit) recordJudged(ctx context.Context, list []accounted, faults map[recon.OperationID]error) error {
	b := ledger.Batch{RunID: u.run.ID, Now: u.at, Versions: map[recon.OperationID]int64{}}
	var told []judged
	for i := range list {
		a := &list[i]
		if !a.write {
			continue
		}
		told = append(told, judged{Case: a.kase, Decision: a.decision})
		b.Decisions = append(b.Decisions, a.decision)
		b.Versions[a.decision.Operation] = a.kase.Operation.Version
		if a.stored != nil && slices.Contains(a.decision.LookIDs, a.stored.ID) {
			b.Looks = append(b.Looks, *a.stored)
		}
	}
	if err := u.limit(verdicts{judged: told}); err != nil {
		return err
	}
	if err := u.write(ctx, list, b, told); err != nil {
		return err
	}
	for id, fault := range faults {
		if _, err := u.Ledger.SetAside(ctx, id, u.at, fault.Error()); err != nil {
			return fmt.Errorf("set aside operation %s (%w): %w", id, fault, err)
		}
	}
	for i := range list {
		u.tellOf(&list[i])
	}
	return u.seek(ctx, list)
}

// seek sees to it that what closed operations know and nobody has seen is asked for, where an
// effect of theirs was seen beside it. An audit may be the first to see that: its list links it,
// and the operation may be due for no look any more.
func (u *audit) seek(ctx context.Context, list []accounted) error {
	var left []recon.Case
	for i := range list {
		a := &list[i]
		judged := a.decision.Operation != "" && !a.kase.Operation.State.Open()
		if mine, _ := belonging(a.kase); judged && len(mine) > 0 && !slices.Contains(onEffects, a.decision.Rule) && unseen(a.kase) {
			left = append(left, a.kase)
		}
	}
	t := teller{ledger: u.Ledger, sheet: func(recon.SourceName) (recon.Sheet, bool) { return u.Source.Sheet(), true }}
	return t.leave(ctx, left, u.at, &concluded{})
}

func (u *audit) write(ctx context.Context, list []accounted, b ledger.Batch, told []judged) error {
	if len(b.Decisions) == 0 {
		return nil
	}
	recorded, err := u.Ledger.Record(ctx, b)
	if err != nil {
		return fmt.Errorf("record a batch of %d operations: %w", len(b.Decisions), err)
	}
	for i := range list { // what another writer was faster on is judged by its next look
		if slices.Contains(recorded.Lost, list[i].kase.Operation.ID) {
			list[i].write = false
		}
	}
	u.remember(recorded)
	u.count(told, recorded)
	return u.pass.step("record")
}

// tellOf puts what holds of an operation into the result: what its class means, what was
// decided, and what is still open of it.
func (u *audit) tellOf(a *accounted) {
	c := a.kase
	holding := slices.Concat(a.judged.Findings, a.decision.Findings)
	for _, f := range c.Findings {
		if string(f.Kind) == string(a.judged.Class) {
			holding = append(holding, f)
		}
	}
	for _, f := range holding {
		print := f.Fingerprint()
		settled := slices.ContainsFunc(c.Settled, func(s recon.Finding) bool {
			return s.Fingerprint() == print && slices.Equal(s.Observed, f.Observed)
		})
		if settled || slices.Contains(a.decision.Ends, print) {
			continue
		}
		u.result.tell(f, operationsOf(c), c.Effects, u.span.counted)
	}
}

// operationsOf gives the operation and those of its group.
func operationsOf(c recon.Case) []recon.Operation {
	list := []recon.Operation{c.Operation}
	for _, m := range c.Group {
		list = append(list, m.Operation)
	}
	return list
}

// placeOf says whether the place where an operation's effect would be was seen whole.
func (u *audit) placeOf(c recon.Case) rules.Place {
	if u.empty {
		return rules.PlaceUnseen
	}
	lag := u.lag()
	place := rules.PlaceUnseen
	first, last := rules.Span(c)
	see := func(kind, account, mode string, w recon.Window, at time.Time) {
		op := &c.Operation
		if kind != c.Policy.Effect || account != op.Account || mode != op.Mode || w.From.After(first) {
			return
		}
		end := at.Truncate(time.Second)
		if past := last.Add(recon.ClockSkew); past.Before(end) {
			end = past
		}
		switch {
		case w.To.Before(end):
		case at.After(last.Add(lag)):
			place = rules.PlaceSeen
		case place == rules.PlaceUnseen:
			place = rules.PlaceYoung
		}
	}
	for _, l := range u.seen {
		see(l.Kind, l.Account, l.Mode, l.Window, l.At)
	}
	for _, s := range u.standing {
		see(s.Kind, s.Account, s.Mode, s.Window, s.At)
	}
	return place
}
