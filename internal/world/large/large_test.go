package large_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/internal/world/large"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// live lives through a plan in a database of its own.
func live(t *testing.T, p *large.Plan) large.Verdict {
	t.Helper()
	v, err := large.Run(t.Context(), p, pgtest.URL(t, pgtest.SimulatedTime(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Months at three providers, with everything that can go wrong: the ledger ends in the
// truth. `make soak` lives through a thousand such worlds. In the first of these, what could
// not be looked at would be taken for absent by whoever holds the two for one.
func TestEveryLargeWorldEndsInTheTruth(t *testing.T) {
	t.Parallel()
	died, byEvents := 0, 0
	for _, seed := range []uint64{88, 80} {
		v := live(t, large.Draw(seed, 300))
		for _, s := range v.Wrongs {
			t.Errorf("seed %d: %s", seed, s)
		}
		// A world in which nothing happens proves nothing.
		if v.InDoubt < 15 || v.ByEvidence < 8 || v.ToPeople < 4 || len(v.Planted) < 3 || v.Events < 20 || v.Audits == 0 || v.Messages == 0 || len(v.Buttons) < 3 || v.Errands["events replayed"] == 0 || v.Forms == 0 {
			t.Errorf("seed %d is too quiet: %+v", seed, v.Numbers)
		}
		byEvents += v.ByEvents
		died += v.Faults["endpoint died before it answered"] + v.Faults["endpoint died before it stored the event"]
	}
	if died == 0 {
		t.Error("the endpoint never died while it took an event")
	}
	if byEvents == 0 {
		t.Error("nothing was closed by events alone")
	}
}

func TestALargeWorldOfOneSeedIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	first, second := live(t, large.Draw(11, 25)), live(t, large.Draw(11, 25))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two lives of one plan differ:\n%s", diff)
	}
}

func TestThePlanOfASeedIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	a, b := large.Draw(7, 50), large.Draw(7, 50)
	if diff := cmp.Diff(a.String(), b.String()); diff != "" {
		t.Errorf("two plans of one seed differ:\n%s", diff)
	}
	if a.Digest() != b.Digest() {
		t.Errorf("two plans of one seed have the digests %s and %s", a.Digest(), b.Digest())
	}
	if c := large.Draw(8, 50); c.String() == a.String() || c.Digest() == a.Digest() {
		t.Error("another seed makes the same plan")
	}
}

// A failure that needs two intents and a trouble shrinks to these three.
func TestAFailingPlanShrinksToWhatItNeeds(t *testing.T) {
	t.Parallel()
	var p *large.Plan
	for seed := uint64(1); ; seed++ {
		p = large.Draw(seed, 60)
		if _, troubles := p.Parts(); len(troubles) >= 4 {
			break
		}
	}
	tries := 0
	intents, troubles := large.Shrink(p, func(some *large.Plan) bool {
		tries++
		i, t := some.Parts()
		return slices.Contains(i, 3) && slices.Contains(i, 57) && slices.Contains(t, 2)
	})
	slices.Sort(intents)
	if !slices.Equal(intents, []int{3, 57}) || !slices.Equal(troubles, []int{2}) {
		t.Errorf("shrunk to %v and %v", intents, troubles)
	}
	if tries > 100 {
		t.Errorf("%d tries: each is a whole world", tries)
	}
}

// Whatever the fake card provider can do wrong befalls somebody in the worlds, whoever asks.
func TestTheWorldsKnowEveryFaultOfTheCardProvider(t *testing.T) {
	t.Parallel()
	sends, reads := large.CardFaults()
	suffered := func(list []stripetest.Fault, kind stripetest.FaultKind) bool {
		return slices.ContainsFunc(list, func(f stripetest.Fault) bool { return f.Kind == kind })
	}
	for kind := stripetest.Slow; kind <= stripetest.BadRequest; kind++ {
		if !suffered(sends, kind) {
			t.Errorf("fault %d of the card provider befalls nobody who sends", kind)
		}
		if kind != stripetest.KeyInUse && !suffered(reads, kind) { // questions bear no key
			t.Errorf("fault %d of the card provider befalls nobody who asks", kind)
		}
	}
}

// What the worlds draw reaches every fault of the bank and of the letter service, and every
// way in which a process of the product can die.
func TestTheWorldsReachEveryFaultAndEveryDeath(t *testing.T) {
	t.Parallel()
	suffered, died := map[string]bool{}, map[string]bool{}
	for seed := range uint64(400) {
		p := large.Draw(seed, 5)
		for source, faults := range large.PlainFaults(p) {
			for _, f := range faults {
				suffered[string(source)+": "+string(f)] = true
			}
		}
		for _, d := range large.Deaths(p) {
			died[d] = true
		}
	}
	for _, source := range []string{"bank", "letters"} {
		for _, f := range httpapitest.Faults {
			if !suffered[source+": "+string(f)] {
				t.Errorf("%q befalls nobody at %s", f, source)
			}
		}
	}
	for _, d := range large.EveryDeath() {
		if !died[d] {
			t.Errorf("nobody dies in %s", d)
		}
	}
}

// What never befell a hundred worlds is told: they would prove nothing of it.
func TestWhatNeverHappenedIsTold(t *testing.T) {
	t.Parallel()
	var few, many large.Numbers
	few.Add(large.Numbers{Worlds: 99, Operations: 99_000})
	if never := few.NeverHappened(); len(never) > 0 {
		t.Errorf("99 worlds may miss something: %v", never)
	}
	many.Add(large.Numbers{
		Worlds: 100, Operations: 100_000, Faults: map[string]int{"product died in a report": 1},
		Buttons: map[recon.Verb]int{recon.Reject: 1}, Errands: map[string]int{"events replayed": 1, "operations erased": 0},
	})
	never := many.NeverHappened()
	for _, what := range []string{"product died in an import", "click of which something came, on adopt", "operations erased"} {
		if !slices.Contains(never, what) {
			t.Errorf("%q is not among %v", what, never)
		}
	}
	for _, what := range []string{"product died in a report", "click of which something came, on reject", "events replayed"} {
		if slices.Contains(never, what) {
			t.Errorf("%q is among %v", what, never)
		}
	}
}

func TestTheTableShowsWhatIsNotWrongToo(t *testing.T) {
	t.Parallel()
	var sum large.Numbers
	sum.Add(large.Numbers{
		Worlds: 1, Operations: 10, Rows: 9, Planted: map[recon.FindingKind]int{recon.FindMissing: 2, recon.FindOrphan: 1},
		Fates: map[string]int{"answer lost": 3, "answered at once": 7}, TimeToTruth: []float64{30, 10, 20},
	})
	sum.Add(large.Numbers{Worlds: 1, Operations: 5, Wrong: map[string]int{"wrong close": 2}, TimeToTruth: []float64{600}})
	var out strings.Builder
	if err := sum.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"15  operations", "9  rows of the ledger", "3  findings that the truth demanded", "2  demanded missing", "3  fates: answer lost", "7  went well: answered at once",
		"2  WRONG: wrong close", "0  WRONG: false finding", "0  WRONG: missed finding", "30s  time to truth, median", "10m0s  time to truth, 99th",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}
