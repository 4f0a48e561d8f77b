package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// heard is a batch of operations with everything that is known of them now.
type heard struct {
	cases  []recon.Case
	answer sources.Answer // of this batch: its looks are new
	seen   seen           // effects that may have to do with the cases, of this answer or of an earlier one
	// settled are operations that what is stored concludes: they were not asked for. Their
	// evidence is the looks at what is stored.
	settled map[recon.OperationID]recon.Decision
	stored  []recon.Look
	// lost are disputes that took back what was seen, and were told of before it was.
	lost []recon.Effect
	at   time.Time // when all of it was known
}

// ask concludes what stored effects conclude, and asks the source for the rest in one
// batch, less what a list of this run already answers. A source that is down is not
// asked.
func (p *pass) ask(ctx context.Context, cases []recon.Case) (heard, error) {
	h := heard{cases: cases, settled: map[recon.OperationID]recon.Decision{}}
	if err := p.testify(ctx, &h); err != nil {
		return h, err
	}
	if err := p.settleStored(&h); err != nil {
		return h, err
	}
	var batch []sources.Question
	for _, c := range h.cases {
		if _, done := h.settled[c.Operation.ID]; !done && !p.answered(c) {
			batch = append(batch, question(c))
		}
	}
	if len(batch) > 0 && !down(p.state) {
		answer, err := p.Source.Ask(ctx, batch, p.options.Now)
		if err != nil {
			return h, fmt.Errorf("ask %s for %d operations: %w", p.out.Source, len(batch), err)
		}
		h.answer = answer
		p.listen(answer)
	}
	h.at = p.options.Now()
	owners, err := p.Ledger.Owners(ctx, strangers(h))
	if err != nil {
		return h, fmt.Errorf("read whose the effects are: %w", err)
	}
	p.shelf.put(h.answer, owners)
	h.seen = p.shelf.take(h.cases)
	if h.lost, err = p.Ledger.TakenBack(ctx, h.seen.effects); err != nil {
		return h, fmt.Errorf("read what took the effects back: %w", err)
	}
	return h, p.step("ask")
}

// takenBack gives the effects of a case with the disputes that were lost under them.
func takenBack(c recon.Case, lost []recon.Effect) []recon.Effect {
	all := c.Effects[:len(c.Effects):len(c.Effects)]
	for _, d := range lost {
		under := slices.ContainsFunc(c.Effects, func(e recon.Effect) bool { return d.Under(e.ID) })
		here := slices.ContainsFunc(c.Effects, func(e recon.Effect) bool { return e.Identity() == d.Identity() })
		if under && !here {
			all = append(all, d)
		}
	}
	return all
}

// listen takes from an answer what is true beyond its batch: whether the source
// answers, what it cost, and the lists that answer for later batches.
func (p *pass) listen(a sources.Answer) {
	for _, l := range a.Looks {
		p.out.ProviderCalls += l.Calls
		if p.Watch.Look != nil {
			p.Watch.Look(l)
		}
		if isList(l) {
			l.Found = nil // the shelf knows
			p.lists = append(p.lists, l)
		}
	}
	if last, blind := blindAnswer(a, p.Source.Sheet()); blind {
		p.fault, p.detail = last.Fault, last.Detail
		p.state = afterBlind(p.state, p.options.Now())
	} else if slices.ContainsFunc(a.Looks, func(l recon.Look) bool { return l.Outcome != recon.Blind }) {
		p.state.Blinds, p.state.BlindSince, p.state.ProbeAt = 0, time.Time{}, time.Time{}
	}
}

// isList reports whether a look read every effect of a range of time.
func isList(l recon.Look) bool {
	return l.Method == recon.ByList && l.Outcome != recon.Blind && l.Complete && l.Parent == "" && !l.Window.IsZero()
}

// hasSpan reports whether a look is a list that answers for some time. One that shows only what
// a clock ahead of ours dates later answers for none.
func hasSpan(l recon.Look) bool { return isList(l) && l.Window.From.Before(l.Window.To) }

// answered reports whether a list of this run says all that asking for the operation
// would: it shows the effect, or it covers the place up to its own time and was made after everything that the operation's senders may have done
// could be seen in it. Effects with a known id are read again, since a list of creations
// may be older than their last change.
func (p *pass) answered(c recon.Case) bool {
	if c.Operation.EffectID != "" || slices.ContainsFunc(c.Effects, func(e recon.Effect) bool { return e.NeedsRead }) {
		return false
	}
	if p.shelf.shows(c) {
		return true
	}
	last := c.Operation.LeaseUntil
	if c.Operation.SentAt.After(last) {
		last = c.Operation.SentAt
	}
	for _, l := range p.lists {
		ability, ok := c.Sheet.Ability(l.Method)
		seen := last.Add(c.Sheet.InFlightMax.Std() + ability.Lag.Std())
		if ok && l.Covers(c.Operation, c.Policy.Effect) && l.At.After(seen) && reachesNow(l) {
			return true
		}
	}
	return false
}

// reachesNow reports whether a list goes on to the moment at which it was asked for: one
// that ends before is silent about what was made after its end. Providers count in whole
// seconds.
func reachesNow(l recon.Look) bool { return !l.Window.To.Before(l.At.Truncate(time.Second)) }

// question asks for the effects of one operation.
func question(c recon.Case) sources.Question {
	o := c.Operation
	q := sources.Question{
		Operation: o.ID, Kind: c.Policy.Effect, Account: o.Account, Mode: o.Mode, EffectID: o.EffectID,
		Parent: o.Parent, Target: o.Target, Group: o.Group, Natural: o.Reference,
		Marks: o.Marks, Money: o.Money, From: o.FirstPossible(),
	}
	// An imported operation does not say what was sent. Its key may still find the
	// effect; that it does not proves nothing, and rules know that.
	if len(o.Marks) == 0 || slices.Contains(o.Marks, recon.MarkKey) {
		q.Key = o.Key
	}
	if q.EffectID == "" {
		for _, e := range c.Effects { // one that we hold and doubt is read by its id
			if e.NeedsRead && (e.Owner == string(o.ID) || e.Reference == string(o.ID)) {
				q.EffectID = e.ID
			}
		}
	}
	return q
}

// settleStored concludes from stored effects what can be concluded from them alone. What
// was seen of them in this run and is not stored yet is newer.
func (p *pass) settleStored(h *heard) error {
	now := p.options.Now()
	var with []recon.Case
	for _, c := range h.cases {
		doubt := slices.ContainsFunc(c.Effects, func(e recon.Effect) bool { return e.NeedsRead })
		if len(c.Effects) > 0 && !doubt && !p.shelf.has(c) {
			with = append(with, c)
		}
	}
	type place struct{ kind, account, mode string }
	at := map[place]int{} // one look at what is stored for all operations of a place
	for _, c := range pair(with, nil, nil) {
		if len(c.Matches) == 0 {
			continue
		}
		look, err := storedLook(c, now)
		if err != nil {
			return err
		}
		in := place{look.Kind, look.Account, look.Mode}
		n, looked := at[in]
		if looked {
			look.ID = h.stored[n].ID
		}
		c.Looks = []recon.Look{look}
		d, err := p.decided(c, now)
		if err != nil || d.From == d.To || !slices.Contains(d.LookIDs, look.ID) {
			continue
		}
		h.settled[c.Operation.ID] = d
		if looked {
			h.stored[n].Found = append(h.stored[n].Found, look.Found...)
		} else {
			at[in] = len(h.stored)
			h.stored = append(h.stored, look)
		}
	}
	return nil
}

// storedLook is the evidence of a conclusion from what was stored before.
func storedLook(c recon.Case, now time.Time) (recon.Look, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return recon.Look{}, fmt.Errorf("name a look: %w", err)
	}
	l := recon.Look{
		ID: id.String(), Source: c.Operation.Source, Method: recon.ByStored, Outcome: recon.Found,
		Kind: c.Policy.Effect, Account: c.Operation.Account, Mode: c.Operation.Mode, At: now,
	}
	for _, m := range c.Matches {
		l.Found = append(l.Found, m.Effect)
	}
	return l, nil
}

// strangers are the effects of an answer of which it is not known whose they are.
func strangers(h heard) []recon.EffectIdentity {
	known := map[recon.EffectIdentity]bool{}
	for _, c := range h.cases {
		for _, e := range c.Effects {
			known[e.Identity()] = true
		}
	}
	var ids []recon.EffectIdentity
	for _, e := range h.answer.Effects {
		if !known[e.Identity()] {
			ids = append(ids, e.Identity())
		}
	}
	return ids
}

// pair gives every case its matches and the effects that they are with. An effect
// that was read again replaces the stored one, as it will in the ledger.
func pair(cases []recon.Case, seen []recon.Effect, owners map[recon.EffectIdentity]string) []recon.Case {
	effects := make(map[recon.EffectIdentity]recon.Effect, len(seen))
	for _, e := range seen {
		e.Owner = owners[e.Identity()]
		effects[e.Identity()] = e
	}
	for _, c := range cases {
		for _, e := range c.Effects {
			if now, again := effects[e.Identity()]; again {
				now.Owner = e.Owner
				e = now
			}
			effects[e.Identity()] = e
		}
	}
	operations, policies := withGroups(cases)
	all := make([]recon.Effect, 0, len(effects))
	for _, e := range effects {
		all = append(all, e)
	}
	matches := matchers.Pair(operations, all, func(o *recon.Operation) matchers.Terms {
		return matchers.TermsOf(policies[o.Action], o.Source)
	})
	of := make(map[recon.OperationID][]recon.Match, len(cases))
	for _, m := range matches {
		of[m.Operation] = append(of[m.Operation], m)
	}
	paired := make([]recon.Case, 0, len(cases))
	for _, c := range cases {
		c.Matches = of[c.Operation.ID]
		c.Effects = nearby(c, effects)
		c.Operation.Marks = sent(c)
		paired = append(paired, c)
	}
	return paired
}

// withGroups gives the operations of the cases and those of their groups, once each, and
// the policies of their actions.
func withGroups(cases []recon.Case) ([]recon.Operation, map[string]recon.Policy) {
	operations := make([]recon.Operation, 0, len(cases))
	policies := make(map[string]recon.Policy, 4)
	here := make(map[recon.OperationID]bool, len(cases))
	add := func(c recon.Case) {
		if !here[c.Operation.ID] {
			here[c.Operation.ID] = true
			operations = append(operations, c.Operation)
			policies[c.Operation.Action] = c.Policy
		}
	}
	for _, c := range cases {
		add(c)
	}
	for _, c := range cases {
		for _, member := range c.Group {
			add(member)
		}
	}
	return operations, policies
}

// sent is what was really given to the provider: what the operation says of that, and
// what its effects bear.
func sent(c recon.Case) []recon.Mark {
	marks := slices.Clone(c.Operation.Marks)
	for _, m := range c.Matches {
		for mark, basis := range map[recon.Mark]recon.Basis{recon.MarkKey: recon.OnKey, recon.MarkReference: recon.OnReference} {
			if m.Basis == basis && m.Certainty == recon.Proof && !slices.Contains(marks, mark) {
				marks = append(marks, mark)
			}
		}
	}
	slices.Sort(marks)
	return marks
}

// nearby are the effects of a case: those that it had, as they are now, and those
// that it was paired with.
func nearby(c recon.Case, effects map[recon.EffectIdentity]recon.Effect) []recon.Effect {
	list := make([]recon.Effect, 0, len(c.Effects)+len(c.Matches))
	have := make(map[recon.EffectIdentity]bool, cap(list))
	add := func(id recon.EffectIdentity) {
		if e, ok := effects[id]; ok && !have[id] {
			have[id] = true
			list = append(list, e)
		}
	}
	for _, e := range c.Effects {
		add(e.Identity())
	}
	for _, m := range c.Matches {
		add(m.Effect)
	}
	return list
}

// errNoPlan says that a rule left an open operation without a next check.
var errNoPlan = errors.New("the rule planned no later check")

// decided lets the rules judge one case. A panic there, or a decision that would leave
// the operation unwatched, is that operation's fault and stops no other.
func (s *Sweep) decided(c recon.Case, now time.Time) (d recon.Decision, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a rule failed: %v", r)
		}
	}()
	decide := rules.Decide
	if s.decide != nil {
		decide = s.decide
	}
	d = decide(c, now)
	if d.To.Open() && !d.Check.Next.After(now) {
		return d, fmt.Errorf("%s: %w", d.Rule, errNoPlan)
	}
	return d, nil
}
