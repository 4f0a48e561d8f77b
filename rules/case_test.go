package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

var (
	sent = time.Date(2026, 3, 10, 10, 0, 0, 0, time.UTC)
	// late is when a look can count: the lease of a minute, the longest time in flight
	// and the lag are over.
	late = sent.Add(20 * time.Minute)
)

// stripeLike is the sheet of a source that keeps keys for a day.
var stripeLike = recon.Sheet{
	System: "stripe", Kinds: []string{"refund"}, KeyLifetime: hours(24), RepeatAnswer: true, KeyHoldsOne: true,
	InFlightMax: recon.Duration(2 * time.Minute), Webhooks: true,
	Abilities: []recon.Ability{
		{Method: recon.ByID, Consistency: recon.Strong, Lag: seconds(30)},
		{Method: recon.ByList, Consistency: recon.Strong, Lag: seconds(30), NeedsMark: []recon.Mark{recon.MarkReference}},
		{Method: recon.BySearch, Consistency: recon.Eventual, Lag: hours(1), NeedsMark: []recon.Mark{recon.MarkReference}},
		{Method: recon.ByChanges, Consistency: recon.Strong, Lag: seconds(30), NeedsMark: []recon.Mark{recon.MarkKey}, History: hours(24 * 30)},
	},
}

func hours(n int) recon.Duration   { return recon.Duration(time.Duration(n) * time.Hour) }
func seconds(n int) recon.Duration { return recon.Duration(time.Duration(n) * time.Second) }

// builder makes a case: an operation that was sent at 10:00 and whose answer was lost.
type builder struct{ c recon.Case }

func lost() *builder {
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class, p.System = "refund.create", "stripe-main", "refund", recon.Irreversible, "stripe"
	p.Repeat, p.OnAbsent, p.KeyLifetime = recon.RepeatSameKey, recon.AbsentRelease, hours(24)
	return &builder{recon.Case{
		Policy: p, Sheet: stripeLike,
		Operation: recon.Operation{
			ID: "op_1", Source: "stripe-main", Action: "refund.create", Target: "order:1", Parent: "ch_1", Key: "k-1",
			Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.Unknown, CreatedAt: sent, SentAt: sent,
			UnknownSince: sent.Add(time.Minute), LeaseUntil: sent.Add(time.Minute), KeyExpiresAt: sent.Add(24 * time.Hour),
			Account: "acct_1", Mode: "live", Marks: []recon.Mark{recon.MarkKey, recon.MarkReference},
			LastClass: recon.ClassIndeterminate, InDoubt: true, Attempts: 1, Version: 3,
		},
		Check: recon.Check{Next: sent},
	}}
}

func (b *builder) op(change func(*recon.Operation)) *builder  { change(&b.c.Operation); return b }
func (b *builder) policy(change func(*recon.Policy)) *builder { change(&b.c.Policy); return b }
func (b *builder) check(change func(*recon.Check)) *builder   { change(&b.c.Check); return b }
func (b *builder) looks(looks ...recon.Look) *builder {
	b.c.Looks = append(b.c.Looks, looks...)
	return b
}
func (b *builder) open(findings ...recon.Finding) *builder    { b.c.Findings = findings; return b }
func (b *builder) settled(findings ...recon.Finding) *builder { b.c.Settled = findings; return b }
func (b *builder) sheet(change func(*recon.Sheet)) *builder   { change(&b.c.Sheet); return b }
func (b *builder) state(s recon.State) *builder               { b.c.Operation.State = s; return b }
func (b *builder) effects(effects ...recon.Effect) *builder {
	b.c.Effects = append(b.c.Effects, effects...)
	return b
}
func (b *builder) decide(now time.Time) recon.Decision { return rules.Decide(b.paired(), now) }
func (b *builder) judge(now time.Time, p rules.Place) rules.Judged {
	return rules.Judge(b.paired(), now, p)
}

// paired gives the case with the matches that matchers make.
func (b *builder) paired() recon.Case {
	c := b.c
	c.Effects, c.Looks = slices.Clone(c.Effects), slices.Clone(c.Looks)
	c.Matches = matchers.Pair([]recon.Operation{c.Operation}, c.Effects, func(*recon.Operation) matchers.Terms {
		return matchers.TermsOf(c.Policy, c.Operation.Source)
	})
	return c
}

// refund is a completed effect that carries our reference.
func refund(id string, change ...func(*recon.Effect)) recon.Effect {
	e := recon.Effect{
		ID: id, Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed,
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, Parent: "ch_1", Reference: "op_1",
		CreatedAt: sent.Add(5 * time.Second), Account: "acct_1", Mode: "live",
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func status(s recon.EffectStatus) func(*recon.Effect) { return func(e *recon.Effect) { e.Status = s } }
func amount(n int64) func(*recon.Effect)              { return func(e *recon.Effect) { e.Money.Minor = n } }
func unmarked(e *recon.Effect)                        { e.Reference, e.Key = "", "" }
func after(d time.Duration) func(*recon.Effect) {
	return func(e *recon.Effect) { e.CreatedAt = sent.Add(d) }
}

// listed is a complete list of the charge's refunds, made at a time. What it found
// stands in effects; silence is absent.
func listed(at time.Time, found ...recon.Effect) recon.Look {
	l := recon.Look{
		ID: "look-" + at.Format("150405.000"), Source: "stripe-main", Method: recon.ByList, Outcome: recon.Absent, Kind: "refund",
		Account: "acct_1", Mode: "live", Parent: "ch_1", At: at, Complete: true, Calls: 1,
	}
	for _, e := range found {
		l.Outcome = recon.Found
		l.Found = append(l.Found, e.Identity())
	}
	return l
}

// referred is a look for our reference.
func referred(at time.Time, found ...recon.Effect) recon.Look {
	l := listed(at, found...)
	l.Method, l.Parent, l.Reference = recon.ByReference, "", "op_1"
	return l
}

// byReference lets the source be asked for our reference.
func byReference(s *recon.Sheet) {
	s.Abilities = append(s.Abilities, recon.Ability{Method: recon.ByReference, Consistency: recon.Strong, NeedsMark: []recon.Mark{recon.MarkReference}})
}

func blindAt(at time.Time) recon.Look {
	l := listed(at)
	l.ID, l.Outcome, l.Complete, l.Fault = "blind-"+at.Format("150405"), recon.Blind, false, "unavailable"
	return l
}

// wants is what a test demands of a decision.
type wants struct {
	rule     string
	to       recon.State
	effect   string
	findings []recon.FindingKind
}

func demand(t *testing.T, d recon.Decision, w wants) {
	t.Helper()
	var kinds []recon.FindingKind
	for _, f := range d.Findings {
		kinds = append(kinds, f.Kind)
	}
	if d.Rule != w.rule || d.To != w.to || d.EffectID != w.effect || !slices.Equal(kinds, w.findings) {
		t.Errorf("got rule %s, %s → %s, effect %q, findings %v (%s)\nwant rule %s, → %s, effect %q, findings %v",
			d.Rule, d.From, d.To, d.EffectID, kinds, d.Reason, w.rule, w.to, w.effect, w.findings)
	}
	if !recon.Legal(d.From, d.To) {
		t.Errorf("%s → %s is not legal", d.From, d.To)
	}
	if d.Reason == "" {
		t.Error("no reason")
	}
}

// undisturbed demands what every wait means: no flag, no change, and a next look.
func undisturbed(t *testing.T, d recon.Decision, now time.Time) {
	t.Helper()
	if d.From != d.To || d.EffectID != "" || len(d.Findings) > 0 || len(d.Ends) > 0 || len(d.Links) > 0 || d.Release {
		t.Errorf("something changed: %+v", d)
	}
	if !d.Check.Next.After(now) {
		t.Errorf("next look at %v is not after %v", d.Check.Next, now)
	}
}
