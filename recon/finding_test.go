package recon_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// TestAFingerprintIsOfWhatTheFindingIsAbout holds it against the contract's own words:
// sha256 over the JSON array of kind, source, sorted operations and sorted effects.
func TestAFingerprintIsOfWhatTheFindingIsAbout(t *testing.T) {
	t.Parallel()
	f := recon.Finding{
		Kind: recon.FindDuplicate, Source: "stripe-main", Operations: []recon.OperationID{"op_2", "op_1"},
		Effects: []recon.EffectRef{{ID: "re_2"}, {ID: "re_1"}}, Reason: "a sentence", Money: recon.Money{Minor: 1, Currency: "EUR"},
	}
	// printf '["duplicate","stripe-main",["op_1","op_2"],["re_1","re_2"]]' | sha256sum
	const want = "8dd27909258b78465e490fe26d312bb6d4f0ec32c51fffa79bc425326c8d6856"
	if got := f.Fingerprint(); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
	turned := f
	turned.Operations, turned.Effects = []recon.OperationID{"op_1", "op_2"}, []recon.EffectRef{{ID: "re_1"}, {ID: "re_2"}}
	turned.Reason, turned.Money, turned.Certainty, turned.Version = "a better sentence", recon.Money{}, recon.Suspected, 7
	if got := turned.Fingerprint(); got != want {
		t.Errorf("the order or what is said of it changes the fingerprint to %s", got)
	}
	for name, other := range map[string]func(*recon.Finding){
		"kind":       func(f *recon.Finding) { f.Kind = recon.FindMismatch },
		"source":     func(f *recon.Finding) { f.Source = "stripe-other" },
		"operations": func(f *recon.Finding) { f.Operations = f.Operations[:1] },
		"effects":    func(f *recon.Finding) { f.Effects = f.Effects[:1] },
		"sides": func(f *recon.Finding) {
			f.Operations, f.Effects = []recon.OperationID{"re_1", "re_2"}, []recon.EffectRef{{ID: "op_1"}, {ID: "op_2"}}
		},
	} {
		g := f
		other(&g)
		if g.Fingerprint() == want {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}
