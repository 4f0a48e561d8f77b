package large_test

import (
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/internal/world/large"
)

// found are worlds that once went wrong, as soak printed them when it had made them small. The
// first one did by a deliberate fault (internal/mutants): blind and half counted as absent.
var found = []large.Found{
	{
		What: "false finding: missing at stripe-told, of which a complete look is said to find no effect, where every look is blind",
		Seed: 2, Operations: 300, Intents: []int{28, 58}, Troubles: []int{},
		Digest: "ee05d87a0458b46a",
	},
	{
		What: "false finding: mismatch, where an event of a second effect came before anybody had seen the first, which the sender had named",
		Seed: 257, Operations: 1000, Intents: []int{66}, Troubles: []int{5},
		Digest: "b792df126ee882a2",
	},
	{
		What: "nothing closes without a look, a definite answer or a person: no look saw an effect that a list showed before it broke off, dated by a clock ahead of ours",
		Seed: 333, Operations: 1000, Intents: []int{55, 9, 89, 105, 121, 157, 175, 21}, Troubles: []int{6, 8},
		Digest: "336296c4e62dbefa",
	},
	{
		What: "missed finding: blind on stripe-main: every look was blind for 2h5m0s of an outage, and none of them was for an operation",
		Seed: 333, Operations: 1000, Intents: []int{30, 46, 50, 80, 100, 186, 22, 82}, Troubles: []int{0, 6, 8},
		Digest: "88c2e84a5ad06232",
	},
	{
		What: "missed finding: missing, where what was imported was given up after a day, and four looks a day apart were asked for",
		Seed: 679, Operations: 1000, Intents: []int{669}, Troubles: []int{8, 13},
		Digest: "f848c1f1c4a4a70b",
	},
}

func TestWorldsThatOnceWentWrongEndInTheTruth(t *testing.T) {
	t.Parallel()
	for _, f := range found {
		p, err := f.Plan()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range live(t, p).Wrongs {
			t.Errorf("%s: %s", f.What, s)
		}
	}
}

// A world that is kept is drawn again as it was, or not at all.
func TestAFoundWorldIsTheOneThatWasFound(t *testing.T) {
	t.Parallel()
	intents, troubles := []int{3, 17, 40}, []int{}
	p := large.Draw(5, 60).Only(intents, troubles)
	kept := large.Keep("wrong close: of one", p)
	again, err := kept.Plan()
	if err != nil || again.String() != p.String() {
		t.Fatalf("it is drawn again as\n%v\nwith %v, and was\n%v", again, err, p)
	}
	for _, part := range []string{`What: "wrong close: of one"`, "Seed: 5, Operations: 60,", "Intents: []int{", "Troubles: []int{}", `Digest: "` + p.Digest() + `"`} {
		if !strings.Contains(kept.String(), part) {
			t.Errorf("no %q in\n%s", part, kept)
		}
	}
	kept.Operations = 61
	if _, err := kept.Plan(); err == nil || !strings.Contains(err.Error(), "another world") || !strings.Contains(err.Error(), "internal/world/soak") {
		t.Errorf("of another world it says: %v", err)
	}
}
