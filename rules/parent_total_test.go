package rules_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

func total(n int64) func(*recon.Effect) { return func(e *recon.Effect) { e.ParentTotal = &n } }

func TestAParentsTotalIsHeldAgainstItsChildren(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		children []recon.Effect
		want     string // ours and theirs, empty: nothing is told
	}{
		{"agrees", []recon.Effect{refund("re_1", amount(1000), total(3000)), refund("re_2", amount(2000), total(3000))}, ""},
		{"agrees by the latest, an older one being out of date", []recon.Effect{refund("re_1", amount(1000), total(1000)), refund("re_2", amount(2000), total(3000), after(60e9))}, ""},
		{"agrees by an older one that was read again after a failure", []recon.Effect{refund("re_1", amount(1000), total(1000)), refund("re_2", amount(2000), total(3000), after(60e9), status(recon.EffectFailed))}, ""},
		{"shows one that is not seen", []recon.Effect{refund("re_1", amount(2000), total(3000))}, "20.00 EUR / 30.00 EUR"},
		{"is exceeded", []recon.Effect{refund("re_1", amount(2000), total(2000)), refund("re_2", amount(2000), total(2000), status(recon.InFlight))}, "40.00 EUR / 20.00 EUR"},
		{"is shown by nobody", []recon.Effect{refund("re_1", amount(2000))}, ""},
		{"is left over by one that did not last", []recon.Effect{refund("re_1", amount(2000), total(2000), status(recon.Reversed))}, "0 EUR / 20.00 EUR"},
		{"is of another kind", []recon.Effect{refund("re_1", amount(1000), total(1000)), refund("dp_1", amount(500), func(e *recon.Effect) { e.Kind = "dispute" })}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := rules.ParentTotals(tt.children)
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("told %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Kind != recon.FindMismatch || got[0].Observed[0].Ours+" / "+got[0].Observed[0].Theirs != tt.want || len(got[0].Operations) != 0 {
				t.Errorf("findings %+v", got)
			}
		})
	}
	f := rules.ParentTotals([]recon.Effect{refund("re_1", amount(2000), total(3000))})[0]
	want := "ch_1 says that every refund under it adds up to 30.00 EUR, and those that are seen add up to 20.00 EUR: re_1 (completed, 20.00 EUR). There is one that is not seen."
	if f.Reason != want || f.Money.Minor != 1000 {
		t.Errorf("reason %q\nwant   %q, money %+v", f.Reason, want, f.Money)
	}
}

func TestB58_TheFeesOfFailuresAreTold(t *testing.T) {
	t.Parallel()
	fee := int64(150)
	var list []rules.Failure
	for _, id := range []string{"ch_1", "ch_2", "ch_3"} {
		e := refund(id, status(recon.EffectFailed))
		e.Fee = &fee
		list = append(list, rules.Failure{Effect: e, Target: "sub:1"})
	}
	if f := rules.Failing(list, list[0].Effect.CreatedAt)[0]; !contains(f.Reason, "The fees add up to 4.50 EUR.") {
		t.Errorf("reason %q", f.Reason)
	}
}
