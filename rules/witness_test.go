package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// orders is what the witness of that name says of the operation.
func orders(outcome recon.Outcome, says recon.Word, money recon.Money, change ...func(*recon.Testimony)) *recon.Testimony {
	t := &recon.Testimony{
		Operation: "op_1", Witness: "orders", Object: "order:1", Says: says, Money: money, Lag: hours(1),
		Look: recon.Look{ID: "look-witness", Source: "shop", Method: recon.ByReference, Outcome: outcome, Kind: "orders", Reference: "order:1", Detail: "as it says"},
	}
	if outcome == recon.Blind {
		t.Look.Fault, t.Look.Detail = "timeout", "SELECT witness orders: no answer in time"
	}
	for _, c := range change {
		c(t)
	}
	return t
}

func sums(t *recon.Testimony)   { t.Sums = true }
func atOnce(t *recon.Testimony) { t.Lag = 0 }

func TestAWitnessThatDisagreesIsToldAndNeverCloses(t *testing.T) {
	t.Parallel()
	eur := func(n int64) recon.Money { return recon.Money{Minor: n, Currency: "EUR"} }
	closed := sent.Add(time.Hour)
	soon, later := closed.Add(30*time.Minute), closed.Add(2*time.Hour)
	for name, c := range map[string]struct {
		state recon.State
		says  *recon.Testimony
		now   time.Time
		told  bool
	}{
		"no witness":                           {recon.Succeeded, nil, later, false},
		"it agrees":                            {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(4200)), later, false},
		"it agrees and shows no amount":        {recon.Succeeded, orders(recon.Found, recon.SaysDone, recon.Money{}), later, false},
		"another amount":                       {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(4300)), soon, true},
		"within the tolerance":                 {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(4195)), soon, false},
		"an amount of nothing":                 {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(0)), soon, true},
		"another currency":                     {recon.Succeeded, orders(recon.Found, recon.SaysDone, recon.Money{Minor: 4200, Currency: "USD"}), soon, true},
		"a sum that holds it":                  {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(9000), sums), later, false},
		"a sum that does not hold it yet":      {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(4000), sums), soon, false},
		"a sum that does not hold it":          {recon.Succeeded, orders(recon.Found, recon.SaysDone, eur(4000), sums), later, true},
		"not done, while it may not know yet":  {recon.Succeeded, orders(recon.Found, recon.SaysNotDone, recon.Money{}), soon, false},
		"not done":                             {recon.Succeeded, orders(recon.Found, recon.SaysNotDone, recon.Money{}), later, true},
		"not done, and it knows at once":       {recon.Succeeded, orders(recon.Found, recon.SaysNotDone, recon.Money{}, atOnce), soon, true},
		"no such object, while it may come":    {recon.Succeeded, orders(recon.Absent, recon.SaysNothing, recon.Money{}), soon, false},
		"no such object":                       {recon.Succeeded, orders(recon.Absent, recon.SaysNothing, recon.Money{}), later, true},
		"it says nothing":                      {recon.Succeeded, orders(recon.Found, recon.SaysNothing, recon.Money{}), later, false},
		"it could not be asked":                {recon.Succeeded, orders(recon.Blind, recon.SaysNothing, recon.Money{}), later, false},
		"failed, and it says done":             {recon.Failed, orders(recon.Found, recon.SaysDone, eur(4200)), soon, true},
		"failed, and the sum may be of others": {recon.Failed, orders(recon.Found, recon.SaysDone, eur(4200), sums), later, false},
		"failed, and it says not done":         {recon.Failed, orders(recon.Found, recon.SaysNotDone, recon.Money{}), later, false},
		"failed, and there is no object":       {recon.Failed, orders(recon.Absent, recon.SaysNothing, recon.Money{}), later, false},
		"failed, and it could not be asked":    {recon.Failed, orders(recon.Blind, recon.SaysDone, eur(4200)), later, false},
	} {
		b := lost().state(c.state).op(func(o *recon.Operation) { o.ClosedAt = closed }).policy(func(p *recon.Policy) { p.Witness, p.Tolerance = "orders", 5 })
		if c.state == recon.Succeeded {
			b = b.op(func(o *recon.Operation) { o.EffectID = "re_1" }).effects(refund("re_1", func(e *recon.Effect) { e.Owner = "op_1" }))
		}
		b.c.Witness = c.says
		d := b.decide(c.now)
		if d.To != c.state || (len(d.Findings) == 1) != c.told {
			t.Errorf("%s: → %s with findings %+v (%s), want it told: %t", name, d.To, d.Findings, d.Reason, c.told)
			continue
		}
		if !c.told {
			continue
		}
		f := d.Findings[0]
		want := []recon.Difference{{Field: "witness orders", Ours: string(c.state), Theirs: "as it says"}}
		if f.Kind != recon.FindMismatch || len(f.Effects) != 0 || cmp.Diff(want, f.Observed) != "" || !strings.Contains(f.Reason, "the witness orders says of order:1: as it says") {
			t.Errorf("%s: finding is %+v", name, f)
		}
		if cmp.Diff([]string{"look-witness"}, d.LookIDs) != "" {
			t.Errorf("%s: evidence is %v, want the look at the witness", name, d.LookIDs)
		}
		// It is told once, stays while the witness cannot be asked, and ends when it agrees.
		f.State = recon.FindingOpen
		b = b.open(f)
		if again := b.decide(c.now); len(again.Findings)+len(again.Ends) > 0 {
			t.Errorf("%s: told again: %+v", name, again)
		}
		for said, ends := range map[*recon.Testimony]int{nil: 0, orders(recon.Blind, recon.SaysNothing, recon.Money{}): 0, agreeing(c.state): 1} {
			if b.c.Witness = said; len(b.decide(c.now).Ends) != ends {
				t.Errorf("%s: with %+v the finding ends: %v, want %d", name, said, b.decide(c.now).Ends, ends)
			}
		}
		b.c.Witness = nil
		if b.policy(func(p *recon.Policy) { p.Witness = "" }); len(b.decide(c.now).Ends) != 1 {
			t.Errorf("%s: the action names no witness any more, and the finding stays", name)
		}
	}
}

// agreeing is what a witness says that agrees with a state.
func agreeing(s recon.State) *recon.Testimony {
	if s == recon.Failed {
		return orders(recon.Found, recon.SaysNotDone, recon.Money{})
	}
	return orders(recon.Found, recon.SaysDone, recon.Money{})
}

func TestWhatAWitnessSaysIsToldWithWhatPeopleMustDecide(t *testing.T) {
	t.Parallel()
	b := lost()
	b.c.Witness = orders(recon.Found, recon.SaysDone, recon.Money{})
	d := b.looks(listed(late)).decide(late)
	if len(d.Findings) != 1 || d.Findings[0].Kind != recon.FindUnresolved || !strings.HasSuffix(d.Findings[0].Reason, " The witness orders says of order:1: as it says.") {
		t.Errorf("findings are %+v", d.Findings)
	}
	b.c.Witness = orders(recon.Blind, recon.SaysNothing, recon.Money{})
	if d := b.decide(late); !strings.HasSuffix(d.Reason, " The witness orders could not be asked: no answer in time.") {
		t.Errorf("reason is %q", d.Reason)
	}
	// A mismatch with the provider is one of its own, and neither ends the other.
	both := lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.ClosedAt = sent }).effects(refund("re_1", amount(4300)))
	both.c.Witness = orders(recon.Found, recon.SaysNotDone, recon.Money{})
	d = both.decide(late.Add(48 * time.Hour))
	if d.To != recon.ManualReview || len(d.Findings) != 1 || len(d.Findings[0].Effects) != 1 {
		t.Errorf("→ %s with %+v, want the provider's mismatch and no word against what is not decided", d.To, d.Findings)
	}
}

func TestLawAWitnessChangesNothingButWhatIsTold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := anyCase(t)
		// A mismatch without an effect is none but a witness's own, which is a test of its own.
		b.c.Findings = slices.DeleteFunc(b.c.Findings, func(f recon.Finding) bool { return f.Kind == recon.FindMismatch })
		want := b.decide(now)
		b.c.Witness = orders(
			rapid.SampledFrom([]recon.Outcome{recon.Found, recon.Absent, recon.Blind}).Draw(t, "outcome of the witness"),
			rapid.SampledFrom([]recon.Word{recon.SaysDone, recon.SaysNotDone, recon.SaysNothing}).Draw(t, "says"),
			recon.Money{Minor: rapid.SampledFrom([]int64{0, 42, 4200}).Draw(t, "shows"), Currency: rapid.SampledFrom([]string{"", "EUR"}).Draw(t, "in")},
			func(w *recon.Testimony) { w.Sums = rapid.Bool().Draw(t, "sums") },
		)
		got := b.decide(now)
		if got.From != want.From || got.To != want.To || got.EffectID != want.EffectID || got.Release != want.Release || got.Rule != want.Rule ||
			cmp.Diff(want.Links, got.Links) != "" || cmp.Diff(want.Check, got.Check) != "" || cmp.Diff(want.Ends, got.Ends) != "" {
			t.Fatalf("the witness changed the decision\nfrom %+v\nto   %+v", want, got)
		}
		if len(got.Findings) < len(want.Findings) || len(got.Findings) > len(want.Findings)+1 {
			t.Fatalf("findings %+v became %+v", want.Findings, got.Findings)
		}
	})
}
