package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// unknownAt is an operation that became unknown when it was sent, whose key never
// expires, so that the ladder stands alone.
func unknownAt() *builder {
	return lost().policy(patient).op(func(o *recon.Operation) {
		o.UnknownSince, o.KeyExpiresAt, o.SentAt = sent, time.Time{}, time.Time{}
	})
}

func TestTheLadderIsOfMomentsSinceItBecameUnknown(t *testing.T) {
	t.Parallel()
	const m, h, d = time.Minute, time.Hour, 24 * time.Hour
	for _, tt := range []struct{ now, next time.Duration }{
		{0, 30 * time.Second}, {29 * time.Second, 30 * time.Second}, {30 * time.Second, m}, {m, 5 * m}, {6 * m, 15 * m}, {16 * m, h},
		{2 * h, 3 * h}, {3 * h, 6 * h}, {7 * h, 12 * h}, {13 * h, d}, {d, 2 * d}, {2*d - time.Second, 2 * d}, {5*d + h, 6 * d},
	} {
		now := sent.Add(tt.now)
		incomplete := listed(now)
		incomplete.Complete = false
		if got := unknownAt().looks(incomplete).decide(now).Check.Next; !got.Equal(sent.Add(tt.next)) {
			t.Errorf("after %v the next look is after %v, want %v", tt.now, got.Sub(sent), tt.next)
		}
	}
}

func TestABlindLookUsesNoRungAndIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	b, now := unknownAt(), sent.Add(7*time.Hour)
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	for i, w := range want {
		b.c.Looks = []recon.Look{blindAt(now)}
		d := b.decide(now)
		if got := d.Check.Next.Sub(now); got != w || d.Check.Blinds != i+1 || d.Check.Looks != 0 || !d.Blind {
			t.Fatalf("blind %d: next after %v, want %v (%+v)", i+1, got, w, d.Check)
		}
		b.c.Check, b.c.Findings, now = d.Check, append(b.c.Findings, d.Findings...), d.Check.Next
	}
	incomplete := listed(now)
	incomplete.Complete = false
	b.c.Looks = []recon.Look{incomplete}
	if d := b.decide(now); d.Check.Blinds != 0 || d.Check.Looks != 1 || !d.Check.Next.Equal(sent.Add(12*time.Hour)) {
		t.Errorf("after the outage: %+v", d.Check)
	}
}

func TestAPassThatAskedNothingLeavesThePlan(t *testing.T) {
	t.Parallel()
	plan := sent.Add(40 * time.Minute)
	d := unknownAt().check(func(k *recon.Check) { k.Next = plan }).decide(late)
	if !d.Check.Next.Equal(plan) || d.Blind {
		t.Errorf("next %v, want %v; blind %v", d.Check.Next, plan, d.Blind)
	}
}

func TestOneLookIsPlannedBeforeTheKeyExpires(t *testing.T) {
	t.Parallel()
	// The key expires after a day; half an hour is kept back, ten minutes are to decide.
	expiry := sent.Add(24*time.Hour - 30*time.Minute - 10*time.Minute)
	now := sent.Add(13 * time.Hour)
	if got := lost().policy(patient).looks(blindAt(now), listedElsewhere(now)).decide(now).Check.Next; !got.Equal(expiry) {
		t.Errorf("next look %v, want %v", got, expiry)
	}
	if got := lost().policy(patient).looks(listedElsewhere(expiry)).decide(expiry).Check.Next; got.Equal(expiry) || !got.After(expiry) {
		t.Errorf("next look %v is not after %v", got, expiry)
	}
}

// listedElsewhere is heard and says nothing of the operation.
func listedElsewhere(at time.Time) recon.Look {
	l := listed(at)
	l.Parent = "ch_2"
	return l
}

func TestWhatAPersonHasIsLookedAtDaily(t *testing.T) {
	t.Parallel()
	d := lost().state(recon.ManualReview).looks(listed(late)).decide(late)
	if want := late.Add(24 * time.Hour); !d.Check.Next.Equal(want) {
		t.Errorf("next look %v, want %v", d.Check.Next, want)
	}
}

func TestALiveLeaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	end := late.Add(45 * time.Second)
	d := lost().op(func(o *recon.Operation) { o.State, o.LeaseUntil = recon.InProgress, end }).looks(listed(late)).decide(late)
	undisturbed(t, d, late)
	if !d.Check.Next.Equal(end) {
		t.Errorf("next look %v, want %v", d.Check.Next, end)
	}
}

func TestClosedOperationsAreReverified(t *testing.T) {
	t.Parallel()
	owned := refund("re_1", func(e *recon.Effect) { e.Owner = "op_1" })
	b := lost().effects(refund("re_1"))
	d := b.decide(late)
	within := func(rung time.Duration, base, next time.Time) {
		t.Helper()
		if off := next.Sub(base) - rung; off < -rung/5 || off > rung/5 {
			t.Errorf("next look %v after closing, want %v ± a fifth", next.Sub(base), rung)
		}
	}
	const day = 24 * time.Hour
	within(day, late, d.Check.Next)
	b = lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.ClosedAt, o.EffectID = late, "re_1" }).effects(owned)
	b.c.Check = d.Check
	for _, rung := range []time.Duration{7 * day, 30 * day, 90 * day} {
		now := b.c.Check.Next
		b.c.Looks = []recon.Look{blindAt(now)}
		if d := b.decide(now); !d.Blind || !d.Check.Next.Equal(now.Add(30*time.Second)) || d.Check.Rung != b.c.Check.Rung {
			t.Fatalf("a blind look used a rung: %+v", d.Check)
		}
		b.c.Looks = []recon.Look{listed(now, owned)}
		d := b.decide(now)
		within(rung, late, d.Check.Next)
		b.c.Check = d.Check
	}
	now := b.c.Check.Next
	b.c.Looks = []recon.Look{listed(now, owned)}
	if d := b.decide(now); !d.Check.Next.IsZero() {
		t.Errorf("after the last rung there is a look at %v", d.Check.Next)
	}
}

func TestAPassThatAskedNothingLeavesThePlanOfAClosedOne(t *testing.T) {
	t.Parallel()
	plan := sent.AddDate(0, 0, 1)
	owned := refund("re_1", func(e *recon.Effect) { e.Owner = "op_1" })
	b := lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.ClosedAt, o.EffectID = sent, "re_1" }).effects(owned)
	if d := b.check(func(k *recon.Check) { k.Next = plan }).decide(late); !d.Check.Next.Equal(plan) || d.Blind {
		t.Errorf("next %v, want %v; blind %v", d.Check.Next, plan, d.Blind)
	}
}

func TestRungsInThePastAtImportAreSkipped(t *testing.T) {
	t.Parallel()
	now := sent.AddDate(0, 0, 50)
	owned := refund("re_1", func(e *recon.Effect) { e.Owner = "op_1" })
	d := lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.ClosedAt, o.EffectID = sent, "re_1" }).effects(owned).looks(listed(now, owned)).decide(now)
	if got := d.Check.Next.Sub(sent); got < 72*24*time.Hour || got > 108*24*time.Hour {
		t.Errorf("next look %v after closing, want the rung of 90 days", got)
	}
}

func TestJitterIsOfTheOperation(t *testing.T) {
	t.Parallel()
	next := func(id recon.OperationID) time.Time {
		e := refund("re_1", func(e *recon.Effect) { e.Reference = string(id) })
		return lost().op(func(o *recon.Operation) { o.ID = id }).effects(e).decide(late).Check.Next
	}
	if !next("op_1").Equal(next("op_1")) {
		t.Error("the same operation has two plans")
	}
	if next("op_1").Equal(next("op_2")) && next("op_2").Equal(next("op_3")) {
		t.Error("operations closed together are looked at together")
	}
}

// counting is an operation that goes to a person when enough looks count.
func counting() *builder {
	b := lost().policy(func(p *recon.Policy) { p.OnAbsent = recon.AbsentMissing })
	b.c.Looks = nil
	return b
}

// next is a pass with one look, after which the next one goes on.
func (b *builder) next(l recon.Look) recon.Decision {
	b.c.Looks = []recon.Look{l}
	d := b.decide(l.At)
	b.c.Check, b.c.Findings = d.Check, append(b.c.Findings, d.Findings...)
	return d
}

func TestAgeRules(t *testing.T) {
	t.Parallel()
	t.Run("given up when the source answers and nothing is known", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(73 * time.Hour)
		b := func() *builder { return lost().op(func(o *recon.Operation) { o.Account = "" }) }
		d := b().looks(listedElsewhere(now)).decide(now)
		demand(t, d, wants{"give_up", recon.ManualReview, "", kinds(recon.FindUnresolved)})
		d = b().looks(blindAt(now)).decide(now)
		demand(t, d, wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)})
		if !d.Blind {
			t.Error("an outage of three days is not blind")
		}
	})
	t.Run("not given up while looks that count find nothing", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(40 * 24 * time.Hour) // imported, or asked again after a long outage
		b := lost()
		for n, want := range []wants{
			{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)},
			{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)},
			{"missing", recon.ManualReview, "", kinds(recon.FindMissing)},
		} {
			at := now.Add(time.Duration(n) * 10 * time.Minute)
			d := b.looks(listed(at)).decide(at)
			demand(t, d, want)
			b.check(func(c *recon.Check) { *c = d.Check })
		}
	})
	t.Run("not given up while the looks of each day can still say that it is missing", func(t *testing.T) {
		t.Parallel()
		for name, of := range map[string]struct {
			absence recon.AbsencePolicy
			looks   int
		}{
			"many looks":   {recon.AbsencePolicy{Looks: 4, Over: recon.Duration(30 * time.Minute)}, 4},
			"over so long": {recon.AbsencePolicy{Looks: 2, Over: recon.Duration(80 * time.Hour)}, 5},
		} {
			now := sent.Add(40*24*time.Hour + time.Minute)
			b := lost().policy(func(p *recon.Policy) { p.Absence = of.absence })
			for n := range of.looks {
				want := wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)}
				if n == of.looks-1 {
					want = wants{"missing", recon.ManualReview, "", kinds(recon.FindMissing)}
				}
				d := b.looks(listed(now)).decide(now)
				t.Log(name, "at", now)
				demand(t, d, want)
				b.check(func(c *recon.Check) { *c = d.Check })
				now = d.Check.Next.Add(time.Duration(1+n) * time.Minute) // sweeps come a little later
			}
		}
	})
	t.Run("an outage in the middle of a count gives nothing up", func(t *testing.T) {
		t.Parallel()
		b := counting()
		away := late.Add(time.Minute)
		back := late.Add(74 * time.Hour)
		for _, step := range []struct {
			look recon.Look
			rule string
		}{{listed(late), "unresolved"}, {blindAt(away), "unresolved"}, {listed(back), "unresolved"}, {listed(back.Add(23 * time.Hour)), "missing"}} {
			if d := b.next(step.look); d.Rule != step.rule {
				t.Errorf("at %s it is %s, want %s: %s", step.look.At, d.Rule, step.rule, d.Reason)
			}
		}
	})
	t.Run("rungs further apart than a day give nothing up", func(t *testing.T) {
		t.Parallel()
		b := counting().policy(func(p *recon.Policy) { p.Checks = append(p.Checks, hours(10*24)) })
		now := sent.Add(6 * 24 * time.Hour)
		for n, want := range []string{"unresolved", "unresolved", "missing"} {
			d := b.next(listed(now))
			if d.Rule != want {
				t.Fatalf("at %s it is %s, want %s", now, d.Rule, want)
			}
			if now = d.Check.Next.Add(time.Duration(1+n) * time.Minute); n == 0 && now.Sub(d.Check.Absence.Last) < 4*24*time.Hour {
				t.Fatalf("the rungs are %s apart", now.Sub(d.Check.Absence.Last))
			}
		}
	})
	t.Run("given up a day after the last look that counts when none comes after it", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(40 * 24 * time.Hour)
		candidate := refund("re_9", unmarked)
		for name, then := range map[string]func(*builder, time.Time) recon.Look{
			"what is imported stands": func(*builder, time.Time) recon.Look { return listed(now) },
			"an effect could be the one": func(b *builder, at time.Time) recon.Look {
				b.c.Effects = []recon.Effect{candidate}
				return listed(at, candidate)
			},
			"the answers are not whole":   func(_ *builder, at time.Time) recon.Look { l := listed(at); l.Complete = false; return l },
			"only something else answers": func(_ *builder, at time.Time) recon.Look { return listedElsewhere(at) },
		} {
			b := counting()
			b.next(listed(now))
			for after, want := range map[time.Duration]string{24*time.Hour - time.Second: "unresolved", 24 * time.Hour: "give_up"} {
				at := now.Add(after)
				b.c.Looks = []recon.Look{then(b, at)}
				if d := b.decide(at); d.Rule != want {
					t.Errorf("%s: after %s it is %s, want %s", name, after, d.Rule, want)
				}
			}
		}
	})
	t.Run("giving up keeps the finding that is open", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(73 * time.Hour)
		open := lost().decide(late).Findings
		d := lost().open(open...).looks(listedElsewhere(now)).decide(now)
		demand(t, d, wants{rule: "give_up", to: recon.ManualReview})
		if len(d.Ends) != 0 {
			t.Errorf("ends %v", d.Ends)
		}
	})
	t.Run("unresolved from the moment that it became unknown", func(t *testing.T) {
		t.Parallel()
		since := func(o *recon.Operation) { o.UnknownSince = late.Add(-14 * time.Minute) }
		demand(t, lost().op(since).looks(listedElsewhere(late)).decide(late), wants{rule: "wait", to: recon.Unknown})
		now := late.Add(time.Minute)
		demand(t, lost().op(since).looks(listedElsewhere(now)).decide(now), wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)})
	})
	t.Run("what nobody can verify goes to a person at once", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(time.Second)
		fax := func() *builder {
			return lost().sheet(func(s *recon.Sheet) { *s = recon.Sheet{} }).policy(func(p *recon.Policy) { p.Unverifiable = "accepted" })
		}
		demand(t, fax().decide(now), wants{"unverifiable", recon.ManualReview, "", kinds(recon.FindUnresolved)})
		demand(t, fax().sheet(func(s *recon.Sheet) { s.Webhooks = true }).decide(now), wants{rule: "wait", to: recon.Unknown})
		// An id can be asked for where it is known.
		byID := func(s *recon.Sheet) { s.Abilities = []recon.Ability{{Method: recon.ByID, Consistency: recon.Strong}} }
		demand(t, fax().sheet(byID).decide(now), wants{"unverifiable", recon.ManualReview, "", kinds(recon.FindUnresolved)})
		told := func(o *recon.Operation) { o.EffectID = "fax_1" }
		demand(t, fax().sheet(byID).op(told).decide(now), wants{rule: "wait", to: recon.Unknown})
	})
}
