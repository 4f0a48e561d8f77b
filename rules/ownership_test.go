package rules_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

func TestWhoseAnUnexplainedEffectIs(t *testing.T) {
	t.Parallel()
	by := func(name string) func(*recon.Effect) { return func(e *recon.Effect) { e.CreatedBy = name } }
	policy := func(change func(*recon.Policy)) recon.Policy {
		p := recon.DefaultPolicy()
		p.Source, p.Effect = "stripe-main", "refund"
		change(&p)
		return p
	}
	open := policy(func(*recon.Policy) {})
	marked := policy(func(p *recon.Policy) { p.Orphans = "marked" })
	agents := policy(func(p *recon.Policy) { p.OrphansBy = []string{"agent"} })
	other := policy(func(p *recon.Policy) { p.Effect, p.Orphans = "charge", "marked" })
	for _, tt := range []struct {
		name     string
		effect   recon.Effect
		policies []recon.Policy
		want     bool
	}{
		{"anybody's, by default", refund("re_1", unmarked, by("ana")), []recon.Policy{open}, true},
		{"unmarked, where marks count", refund("re_1", unmarked), []recon.Policy{marked}, false},
		{"blank, where marks count", refund("re_1", func(e *recon.Effect) { e.Reference = "  " }), []recon.Policy{marked}, false},
		{"marked, where marks count", refund("re_1"), []recon.Policy{marked}, true},
		{"made by another", refund("re_1", by("ana")), []recon.Policy{agents}, false},
		{"made by one of ours", refund("re_1", by("agent")), []recon.Policy{agents}, true},
		{"made by nobody who is named", refund("re_1"), []recon.Policy{agents}, true},
		{"ours by one of two policies", refund("re_1", unmarked), []recon.Policy{marked, open}, true},
		{"of a kind that no policy makes", refund("re_1", unmarked), []recon.Policy{other}, true},
		{"of another source", refund("re_1", unmarked, func(e *recon.Effect) { e.Source = "bank" }), []recon.Policy{marked}, true},
	} {
		if got := rules.Owns(tt.effect, tt.policies); got != tt.want {
			t.Errorf("%s: ours %t, want %t", tt.name, got, tt.want)
		}
	}
}
