package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// anyCase draws a case in which everything may contradict everything, and a time.
func anyCase(t *rapid.T) (*builder, time.Time) {
	chance := func(label string, percent int) bool { return rapid.IntRange(1, 100).Draw(t, label) <= percent }
	span := func(label string, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(most/time.Second)).Draw(t, label)) * time.Second
	}
	b := lost().state(rapid.SampledFrom(recon.States).Draw(t, "state"))
	o := &b.c.Operation
	o.LeaseUntil = sent.Add(span("lease", time.Hour))
	if chance("never sent", 20) {
		o.SentAt, o.UnknownSince, o.LeaseUntil, o.KeyExpiresAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	}
	if chance("closed", 50) {
		o.ClosedAt = sent.Add(span("closed at", 100*24*time.Hour))
	}
	o.EffectID = rapid.SampledFrom([]string{"", "", "re_0", "re_1"}).Draw(t, "effect id")
	o.Account = rapid.SampledFrom([]string{"acct_1", "acct_1", ""}).Draw(t, "account")
	o.Marks = rapid.SampledFrom([][]recon.Mark{nil, {recon.MarkKey}, {recon.MarkReference}, {recon.MarkKey, recon.MarkReference}}).Draw(t, "marks")
	o.LastClass = rapid.SampledFrom([]recon.AttemptClass{"", recon.ClassIndeterminate, recon.ClassStoredError}).Draw(t, "class")
	p := &b.c.Policy
	p.OnAbsent = rapid.SampledFrom([]recon.OnAbsent{recon.AbsentMissing, recon.AbsentRelease}).Draw(t, "on absent")
	p.OnNeverSent = rapid.SampledFrom([]recon.OnNeverSent{recon.NeverSentKeep, recon.NeverSentFail}).Draw(t, "on never sent")
	p.Absence = recon.AbsencePolicy{Looks: rapid.IntRange(1, 3).Draw(t, "looks"), Over: recon.Duration(span("over", 20*time.Minute))}
	b.c.Sheet.KeyHoldsOne = chance("holds one", 50)
	now := sent.Add(span("now", 120*time.Hour))
	for i := range rapid.IntRange(0, 3).Draw(t, "effects") {
		b.effects(refund(fmt.Sprintf("re_%d", i), func(e *recon.Effect) {
			e.Status = rapid.SampledFrom([]recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed}).Draw(t, "status")
			e.Reference = rapid.SampledFrom([]string{"op_1", "op_1", "", "OP_1", "op_2"}).Draw(t, "reference")
			e.Money.Minor = rapid.SampledFrom([]int64{4200, 4200, 42}).Draw(t, "amount")
			e.CreatedAt = sent.Add(span("created", time.Minute))
			e.Owner = rapid.SampledFrom([]string{"", "op_1"}).Draw(t, "owner")
		}))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "looks made") {
		l := listed(now.Add(-span("before now", time.Hour)))
		l.ID = fmt.Sprintf("look-%d", i)
		l.Outcome = rapid.SampledFrom([]recon.Outcome{recon.Absent, recon.Found, recon.Blind}).Draw(t, "outcome")
		l.Complete = l.Outcome != recon.Blind && chance("complete", 80)
		l.Method = rapid.SampledFrom([]recon.Method{recon.ByList, recon.ByList, recon.BySearch, recon.ByStored}).Draw(t, "method")
		b.looks(l)
	}
	if chance("counted before", 40) {
		first := sent.Add(span("first", 2*time.Hour))
		b.check(func(k *recon.Check) {
			k.Absence = recon.Absence{Looks: 2, First: first, Last: first.Add(span("last", time.Hour)), LookIDs: []string{"before-1", "before-2"}}
		})
	}
	b.check(func(k *recon.Check) {
		k.Next = sent.Add(span("next", 120*time.Hour))
		k.Blinds = rapid.IntRange(0, 5).Draw(t, "blinds")
	})
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(recon.FindingKinds), 0, 3, rapid.ID).Draw(t, "open findings") {
		b.c.Findings = append(b.c.Findings, recon.Finding{Kind: k, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{"op_1"}})
	}
	return b, now
}

// onlyBlind keeps the blind looks of a case.
func onlyBlind(b *builder) {
	b.c.Looks = slices.DeleteFunc(b.c.Looks, func(l recon.Look) bool { return l.Outcome != recon.Blind })
}

func TestLawEveryDecisionIsLegalAndEveryOpenOperationHasItsNextCheck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		d := b.decide(now)
		if !recon.Legal(d.From, d.To) || d.From != b.c.Operation.State {
			t.Fatalf("%s: %s → %s", d.Rule, d.From, d.To)
		}
		if d.To.Open() && !d.Check.Next.After(now) {
			t.Fatalf("%s leaves an open operation without a next check: %v at %v", d.Rule, d.Check.Next, now)
		}
		if !d.Check.Next.IsZero() && !d.Check.Next.After(now) {
			t.Fatalf("%s plans %v at %v", d.Rule, d.Check.Next, now)
		}
		if !slices.Contains(rules.Names(), d.Rule) || d.Reason == "" {
			t.Fatalf("rule %q, reason %q", d.Rule, d.Reason)
		}
	})
}

func TestLawABlindLookNeverChangesWhereItGoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		before := b.decide(now)
		b.looks(blindAt(now))
		after := b.decide(now)
		if before.To != after.To || before.Release != after.Release || after.Check.Absence.Looks > before.Check.Absence.Looks {
			t.Fatalf("%s → %s became %s → %s by a blind look", before.Rule, before.To, after.Rule, after.To)
		}
	})
}

func TestLawBlindnessConcludesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.c.Effects = nil
		onlyBlind(b)
		b.looks(blindAt(now))
		d := b.decide(now)
		// Time alone may make unknown what nobody holds any more; nothing else.
		if d.To != d.From && d.To != recon.Unknown {
			t.Fatalf("%s: %s → %s although nothing could be asked", d.Rule, d.From, d.To)
		}
		if d.From == d.To && !d.Blind {
			t.Fatalf("%s does not say that it is blind", d.Rule)
		}
		if d.Check.Rung > b.c.Check.Rung || d.Check.Looks > b.c.Check.Looks {
			t.Fatalf("a blind look used a rung: %+v", d.Check)
		}
	})
}

func TestLawAbsenceNeedsLooksThatCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.c.Effects = slices.DeleteFunc(b.c.Effects, func(e recon.Effect) bool { return e.Owner == "op_1" || e.Reference == "op_1" })
		b.c.Operation.EffectID = ""
		d := b.decide(now)
		closes := d.To == recon.Failed || d.Release || d.To == recon.ManualReview && d.Rule != "give_up"
		if d.From == d.To || !closes {
			return
		}
		if len(d.LookIDs) == 0 {
			t.Fatalf("%s: %s → %s without evidence", d.Rule, d.From, d.To)
		}
		for i := range b.c.Looks { // the same looks, incomplete, must not do it
			b.c.Looks[i].Complete = false
		}
		if again := b.decide(now); again.To == d.To && again.Rule != "give_up" {
			t.Fatalf("%s: %s → %s also by incomplete looks", again.Rule, again.From, again.To)
		}
	})
}

func TestLawSuggestionsNeverClose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.c.Operation.EffectID = ""
		for i := range b.c.Effects {
			b.c.Effects[i].Owner = ""
			if b.c.Effects[i].Reference == "op_1" {
				b.c.Effects[i].Reference = "OP_1"
			}
		}
		with := b.decide(now)
		if with.To != with.From && (with.To == recon.Succeeded || with.EffectID != "" || len(with.Links) > 0) {
			t.Fatalf("%s: %s → %s on a suggestion", with.Rule, with.From, with.To)
		}
		b.c.Effects = nil
		// It stops the count of absence, so that what is old is given to people sooner.
		if without := b.decide(now); without.To == without.From && with.To != with.From && with.Rule != "give_up" {
			t.Fatalf("%s: a suggestion changed %s to %s", with.Rule, with.From, with.To)
		}
	})
}

func TestLawClosingCarriesItsEvidence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		d := b.decide(now)
		if d.From == d.To || d.To.Open() {
			return
		}
		stored := d.EffectID
		if stored == "" {
			stored = b.c.Operation.EffectID
		}
		if len(d.LookIDs) == 0 && (stored == "" || len(d.Links) == 0) {
			t.Fatalf("%s: %s → %s without look and effect", d.Rule, d.From, d.To)
		}
		if d.To == recon.Succeeded && stored == "" {
			t.Fatalf("%s: succeeded without effect", d.Rule)
		}
	})
}

func TestLawOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		c := b.paired()
		want := rules.Decide(c, now)
		slices.Reverse(c.Effects)
		slices.Reverse(c.Looks)
		slices.Reverse(c.Matches)
		slices.Reverse(c.Findings)
		if diff := cmp.Diff(want, rules.Decide(c, now)); diff != "" {
			t.Fatalf("another order, another decision:\n%s", diff)
		}
	})
}

func TestLawALiveLeaseIsTouchedByProofOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.op(func(o *recon.Operation) { o.State, o.LeaseUntil = recon.InProgress, now.Add(time.Second) })
		if d := b.decide(now); d.To != recon.InProgress && d.To != recon.Succeeded {
			t.Fatalf("%s: under a live lease it became %s", d.Rule, d.To)
		}
	})
}

func TestLawOnlyProofLeavesAPersonsHands(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.state(recon.ManualReview)
		d := b.decide(now)
		if d.To == recon.ManualReview {
			return
		}
		proof := slices.ContainsFunc(d.Links, func(m recon.Match) bool { return m.Certainty == recon.Proof && m.Equal() })
		if d.To != recon.Succeeded || !proof {
			t.Fatalf("%s took it from a person to %s", d.Rule, d.To)
		}
	})
}

func TestLawASecondPassOverTheSameAddsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		b.c.Looks = nil
		b.check(func(k *recon.Check) { k.Next = now })
		for range 4 { // as the ledger records; a lease that is over goes by way of unknown
			d := b.decide(now)
			if !d.Changes() {
				return
			}
			o := &b.c.Operation
			o.State, b.c.Check = d.To, d.Check
			if d.EffectID != "" {
				o.EffectID = d.EffectID
			}
			for _, m := range d.Links {
				for i := range b.c.Effects {
					if b.c.Effects[i].Identity() == m.Effect {
						b.c.Effects[i].Owner = "op_1"
					}
				}
			}
			b.c.Findings = slices.DeleteFunc(b.c.Findings, func(f recon.Finding) bool { return slices.Contains(d.Ends, f.Fingerprint()) })
			b.c.Findings = append(b.c.Findings, d.Findings...)
			if d.From != d.To && d.To == recon.Unknown {
				o.UnknownSince = now
			}
		}
		t.Fatalf("four passes over the same, and the fifth changes again: %+v", b.decide(now))
	})
}
