package rules_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// once is a policy by which one look that counts is enough.
func once(p *recon.Policy) { p.Absence = recon.AbsencePolicy{Looks: 1} }

func patient(p *recon.Policy) { p.UnresolvedAfter = hours(200); p.GiveUpAfter = hours(400) }

func look(change ...func(*recon.Look)) recon.Look {
	l := listed(late)
	for _, c := range change {
		c(&l)
	}
	return l
}

func TestALookCountsOnlyIf(t *testing.T) {
	t.Parallel()
	window := func(from, to time.Time) func(*recon.Look) {
		return func(l *recon.Look) { l.Parent, l.Window = "", recon.Window{From: from, To: to} }
	}
	first := sent.Add(-recon.ClockSkew)
	byID := func(l *recon.Look) { l.Method, l.Parent, l.EffectID = recon.ByID, "", "re_1" }
	byKey := func(l *recon.Look) {
		l.Method, l.Parent, l.Key, l.Window = recon.ByChanges, "", "k-1", recon.Window{From: first, To: late}
	}
	at := func(d time.Duration) func(*recon.Look) { return func(l *recon.Look) { l.At = sent.Add(d) } }
	none := func(*recon.Operation) {}
	// The lease ends a minute after the first attempt, a request may work two minutes
	// longer, and a list shows what exists after 30 s.
	const seen = 3*time.Minute + 30*time.Second
	tests := []struct {
		name   string
		op     func(*recon.Operation)
		look   recon.Look
		counts bool
	}{
		{"all holds for a list of the parent", none, look(), true},
		{"all holds for a list of the window", none, look(window(first, late)), true},
		{"all holds for the key in the feed of changes", none, look(byKey), true},
		{"the list found other effects", none, look(func(l *recon.Look) { l.Outcome = recon.Found; l.Found = []recon.EffectIdentity{{ID: "re_9"}} }), true},
		{"it is not blind", none, look(func(l *recon.Look) { l.Outcome = recon.Blind }), false},
		{"it is complete", none, look(func(l *recon.Look) { l.Complete = false }), false},
		{"its method is strong", none, look(at(3*time.Hour), func(l *recon.Look) { l.Method, l.Parent, l.Reference = recon.BySearch, "", "op_1" }), false},
		{"its method is on the sheet", none, look(func(l *recon.Look) { l.Method = recon.ByFile }), false},
		{"it asked in the operation's account", none, look(func(l *recon.Look) { l.Account = "acct_2" }), false},
		{"it asked in the operation's mode", none, look(func(l *recon.Look) { l.Mode = "test" }), false},
		{"it asked for the kind that the action makes", none, look(func(l *recon.Look) { l.Kind = "charge" }), false},
		{"it asked for the operation's parent", none, look(func(l *recon.Look) { l.Parent = "ch_2" }), false},
		{"the account is known", func(o *recon.Operation) { o.Account = "" }, look(), false},
		{"the window begins before the first attempt less five minutes", none, look(window(first.Add(time.Second), late)), false},
		{"the window reaches to the look", none, look(window(first, sent.Add(time.Minute))), false},
		{"or at least past all that can still have been made", none, look(window(first, sent.Add(9*time.Minute))), true},
		{"though a clock differs from ours", none, look(window(first, sent.Add(8*time.Minute-time.Second))), false},
		{"though a clock differs from ours, just", none, look(window(first, sent.Add(8*time.Minute))), true},
		{"the feed of changes reaches back far enough", func(o *recon.Operation) { o.CreatedAt, o.SentAt = sent.AddDate(0, -2, 0), sent.AddDate(0, -2, 0) },
			look(byKey, func(l *recon.Look) { l.Window.From = sent.AddDate(0, -3, 0) }), false},
		{"it was made after lease, flight and lag", none, look(at(seen)), false},
		{"it was made after lease, flight and lag, just", none, look(at(seen + time.Second)), true},
		{"the last lease counts, not the first", func(o *recon.Operation) { o.LeaseUntil = late }, look(), false},
		{"without a known lease one is assumed from the sending", func(o *recon.Operation) { o.LeaseUntil = time.Time{} }, look(at(seen)), false},
		{"the reference was really sent", func(o *recon.Operation) { o.Marks = []recon.Mark{recon.MarkKey} }, look(), false},
		{"the key was really sent", func(o *recon.Operation) { o.Marks = []recon.Mark{recon.MarkReference} }, look(byKey), false},
		{"an imported operation says what was sent", func(o *recon.Operation) { o.Marks = nil }, look(), false},
		{"or its effect is known by id", func(o *recon.Operation) { o.Marks, o.EffectID = nil, "re_1" }, look(byID), true},
		{"a list shows a known id", func(o *recon.Operation) { o.Marks, o.EffectID = nil, "re_1" }, look(), true},
		{"a look by id asked for the operation's own", func(o *recon.Operation) { o.EffectID = "re_2" }, look(byID), false},
		{"what was found by id and is not ours says nothing clear", func(o *recon.Operation) { o.EffectID = "re_1" },
			look(byID, func(l *recon.Look) { l.Outcome = recon.Found }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := lost().policy(patient).op(tt.op).looks(tt.look).decide(late)
			if got := d.Check.Absence.Looks == 1; got != tt.counts {
				t.Errorf("counts: %v, want %v (%+v)", got, tt.counts, d.Check.Absence)
			}
			if d.To != recon.Unknown {
				t.Errorf("one look of three made it %s", d.To)
			}
		})
	}
}

// A list that shows effects without any mark finds nothing of what gave none to the provider.
func TestALookThatNeedsNoMarkCountsWhereSomethingWasSent(t *testing.T) {
	t.Parallel()
	unmarked := func(s *recon.Sheet) {
		s.Abilities = []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong, Lag: seconds(30)}}
	}
	for name, tt := range map[string]struct {
		marks []recon.Mark
		want  int
	}{
		"a reference was sent": {[]recon.Mark{recon.MarkReference}, 1},
		"nothing was sent":     {nil, 0},
	} {
		d := lost().policy(patient).sheet(unmarked).op(func(o *recon.Operation) { o.Marks = tt.marks }).looks(look()).decide(late)
		if d.Check.Absence.Looks != tt.want {
			t.Errorf("%s: %d looks count, want %d", name, d.Check.Absence.Looks, tt.want)
		}
	}
}

// passes runs passes at times, each with the look that the pass makes, and gives the
// last decision. The plan is carried over as the ledger does.
func passes(b *builder, times ...time.Duration) recon.Decision {
	var d recon.Decision
	for _, after := range times {
		now := sent.Add(after)
		b.c.Looks = []recon.Look{listed(now)}
		d = b.decide(now)
		b.c.Check = d.Check
		b.c.Findings = append(b.c.Findings, d.Findings...)
	}
	return d
}

func TestAbsentTakesEnoughLooksOverEnoughTime(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	tests := []struct {
		name  string
		times []time.Duration
		to    recon.State
	}{
		{"two looks are not three", []time.Duration{5 * m, 20 * m}, recon.Unknown},
		{"three looks within nine minutes are not spread enough", []time.Duration{5 * m, 6 * m, 14 * m}, recon.Unknown},
		{"early looks do not count towards three", []time.Duration{1 * m, 2 * m, 5 * m, 20 * m}, recon.Unknown},
		{"three looks over ten minutes are absent", []time.Duration{5 * m, 6 * m, 15 * m}, recon.Pending},
		{"a fourth look ends what three did not spread", []time.Duration{5 * m, 6 * m, 7 * m, 15 * m}, recon.Pending},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := passes(lost().policy(patient), tt.times...)
			if d.To != tt.to {
				t.Errorf("%s (%s): %s, want %s", d.Rule, d.Reason, d.To, tt.to)
			}
		})
	}
	t.Run("the same standing coverage counts once", func(t *testing.T) {
		t.Parallel()
		b := lost().policy(patient)
		b.c.Looks = []recon.Look{listed(late)}
		for i := range 5 {
			d := b.decide(late.Add(time.Duration(i) * time.Hour))
			b.c.Check = d.Check
			if d.To != recon.Unknown || d.Check.Absence.Looks != 1 {
				t.Fatalf("pass %d: %s, %+v", i, d.To, d.Check.Absence)
			}
		}
	})
	t.Run("standing coverage under another name counts once", func(t *testing.T) {
		t.Parallel()
		b := lost().policy(patient).looks(listed(late))
		b.c.Check = b.decide(late).Check
		again := listed(late)
		again.ID = "another name"
		b.c.Looks = []recon.Look{again}
		if d := b.decide(late.Add(time.Hour)); d.Check.Absence.Looks != 1 {
			t.Errorf("counted %+v", d.Check.Absence)
		}
	})
	t.Run("several looks of one pass count once", func(t *testing.T) {
		t.Parallel()
		other := listed(late.Add(time.Second))
		if d := lost().policy(patient).looks(listed(late), other).decide(late.Add(time.Minute)); d.Check.Absence.Looks != 1 {
			t.Errorf("counted %+v", d.Check.Absence)
		}
	})
	t.Run("a new attempt begins the count anew", func(t *testing.T) {
		t.Parallel()
		b := lost().policy(patient)
		passes(b, 5*m, 6*m)
		b.op(func(o *recon.Operation) { o.LeaseUntil, o.Attempts = sent.Add(7*m), 2 })
		if d := passes(b, 15*m); d.To != recon.Unknown || d.Check.Absence.Looks != 1 {
			t.Errorf("%s, %+v", d.To, d.Check.Absence)
		}
	})
}

func TestAReleaseSaysWhyAndUntilWhen(t *testing.T) {
	t.Parallel()
	d := passes(lost().policy(patient), 5*time.Minute, 6*time.Minute, 15*time.Minute)
	demand(t, d, wants{rule: "release", to: recon.Pending})
	if !d.Release || d.Reason != "The refund of 42.00 EUR for order:1 is not at the provider: 3 complete looks over 10 min found nothing. "+
		"It may be sent once more under the same key until 2026-03-11 09:30:00 UTC." {
		t.Errorf("release %v, reason %q", d.Release, d.Reason)
	}
	if diff := cmp.Diff([]string{"look-100500.000", "look-100600.000", "look-101500.000"}, d.LookIDs); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if want := sent.Add(30 * time.Minute); !d.Check.Next.Equal(want) {
		t.Errorf("next look at %v, want %v: a released operation that nobody sends is asked for again", d.Check.Next, want)
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*builder) *builder
		why    string
	}{
		{"by policy", func(b *builder) *builder { return b.policy(func(p *recon.Policy) { p.OnAbsent = recon.AbsentMissing }) }, "the policy puts absent operations before a person"},
		{"for a source without keys", func(b *builder) *builder { return b.sheet(func(s *recon.Sheet) { s.KeyLifetime = 0 }) }, "the source keeps no keys"},
		{"for a key that was not sent", func(b *builder) *builder {
			return b.op(func(o *recon.Operation) { o.Marks = []recon.Mark{recon.MarkReference} })
		}, "its key was not sent"},
		{"for an irreversible action that may not repeat", func(b *builder) *builder { return b.policy(func(p *recon.Policy) { p.Repeat = recon.RepeatNever }) }, "its class is irreversible"},
		{"when an earlier release lapsed unused", func(b *builder) *builder {
			return b.op(func(o *recon.Operation) { o.Released = true })
		}, "it was released before and nobody sent it"},
		{"after a stored error", func(b *builder) *builder {
			return b.op(func(o *recon.Operation) { o.LastClass = recon.ClassStoredError })
		}, "the provider stored an error"},
		{"when all attempts are used", func(b *builder) *builder { return b.op(func(o *recon.Operation) { o.Attempts = 6 }) }, "it has used all its attempts"},
		{"past the key's life", func(b *builder) *builder { return b.op(func(o *recon.Operation) { o.KeyExpiresAt = sent }) }, "its key is about to expire"},
		{"with no time left for one lease", func(b *builder) *builder {
			return b.op(func(o *recon.Operation) { o.KeyExpiresAt = sent.Add(15*time.Minute + 30*time.Minute + time.Minute) })
		}, "its key is about to expire"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := passes(tt.change(lost().policy(patient)), 5*time.Minute, 6*time.Minute, 15*time.Minute)
			demand(t, d, wants{"missing", recon.ManualReview, "", kinds(recon.FindMissing)})
			if len(d.LookIDs) != 3 || !contains(d.Reason, tt.why) {
				t.Errorf("evidence %v, reason %q; want it to say %q", d.LookIDs, d.Reason, tt.why)
			}
		})
	}
	t.Run("a reversible action may be released without a policy of repeats", func(t *testing.T) {
		t.Parallel()
		b := lost().policy(patient).policy(func(p *recon.Policy) { p.Repeat, p.Class = recon.RepeatNever, recon.Reversible })
		demand(t, passes(b, 5*time.Minute, 6*time.Minute, 15*time.Minute), wants{rule: "release", to: recon.Pending})
	})
}

func TestB43_AnExpiredKeyIsNeverReleasedForARetry(t *testing.T) {
	t.Parallel()
	// Sent at 10:00; a day and an hour later nothing is there and the key is gone.
	const day = 24 * time.Hour
	d := passes(lost().policy(patient), day+time.Hour, day+2*time.Hour, day+3*time.Hour)
	demand(t, d, wants{"missing", recon.ManualReview, "", kinds(recon.FindMissing)})
	if d.Release || !contains(d.Reason, "its key is about to expire or has expired") {
		t.Errorf("release %v, reason %q", d.Release, d.Reason)
	}
}

func TestMissingOfASucceededOne(t *testing.T) {
	t.Parallel()
	claimed := func() *builder {
		return lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.ClosedAt = sent })
	}
	demand(t, claimed().looks(listed(late)).decide(late), wants{"missing", recon.ManualReview, "", kinds(recon.FindMissing)})
	demand(t, claimed().looks(blindAt(late)).decide(late), wants{rule: "wait", to: recon.Succeeded})
	demand(t, claimed().op(func(o *recon.Operation) { o.Marks = nil }).looks(listed(late)).decide(late), wants{rule: "wait", to: recon.Succeeded})
	demand(t, claimed().effects(refund("re_9", unmarked)).looks(listed(late, refund("re_9"))).decide(late), wants{rule: "wait", to: recon.Succeeded})
	raised := claimed().looks(listed(late)).decide(late).Findings
	demand(t, claimed().settled(raised...).looks(listed(late)).decide(late), wants{rule: "wait", to: recon.Succeeded})
}

func TestAReleasedOperationThatNobodySendsIsUnknownAgain(t *testing.T) {
	t.Parallel()
	b := lost().policy(patient)
	d := passes(b, 5*time.Minute, 6*time.Minute, 15*time.Minute)
	b.c.Operation.State, b.c.Operation.Released, b.c.Looks = d.To, true, nil
	demand(t, b.decide(sent.Add(29*time.Minute)), wants{rule: "wait", to: recon.Pending})
	d = b.decide(d.Check.Next)
	demand(t, d, wants{rule: "stale_release", to: recon.Unknown})
	if d.Check.Absence.Looks != 0 {
		t.Errorf("what was not there before the release still counts: %+v", d.Check.Absence)
	}
}
