package rules_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// charged is the case of a charge.
func charged() *builder {
	return lost().policy(func(p *recon.Policy) { p.Action, p.Effect = "charge.create", "charge" }).
		op(func(o *recon.Operation) { o.Action, o.Parent = "charge.create", "" })
}

func charge(id string, change ...func(*recon.Effect)) recon.Effect {
	return refund(id, append([]func(*recon.Effect){func(e *recon.Effect) { e.Kind, e.Parent = "charge", "" }}, change...)...)
}

func refundOf(parent string, change ...func(*recon.Effect)) recon.Effect {
	return refund("re_1", append([]func(*recon.Effect){unmarked, after(time.Hour), func(e *recon.Effect) { e.Parent = parent }}, change...)...)
}

func TestARefundEndsADuplicateAndIsExplained(t *testing.T) {
	t.Parallel()
	twice := charged().effects(charge("ch_1"), charge("ch_2", after(time.Minute)))
	raised := twice.decide(late)
	demand(t, raised, wants{"duplicate", recon.Succeeded, "ch_1", kinds(recon.FindDuplicate)})
	again := func(more ...recon.Effect) *builder {
		return charged().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "ch_1" }).open(raised.Findings...).
			effects(charge("ch_1"), charge("ch_2", after(time.Minute))).effects(more...)
	}
	d := again(refundOf("ch_2")).decide(late)
	demand(t, d, wants{"found", recon.Succeeded, "", nil})
	if len(d.Ends) != 1 || d.Ends[0] != raised.Findings[0].Fingerprint() {
		t.Errorf("ends %v", d.Ends)
	}
	j := charged().state(recon.Succeeded).effects(charge("ch_1"), charge("ch_2", after(time.Minute)), refundOf("ch_2")).judge(late, rules.PlaceSeen)
	if j.Class != rules.ClassMatched || len(j.Explained) != 1 || j.Explained[0].ID != "re_1" {
		t.Errorf("judged %+v", j)
	}
	for name, more := range map[string][]recon.Effect{
		"nothing":                  nil,
		"a part of it":             {refundOf("ch_2", amount(4100))},
		"a refund that failed":     {refundOf("ch_2", status(recon.EffectFailed))},
		"a refund of another mode": {refundOf("ch_2", func(e *recon.Effect) { e.Mode = "test" })},
	} {
		if d := again(more...).decide(late); len(d.Ends) != 0 || d.Rule != "duplicate" {
			t.Errorf("%s ends it: %+v", name, d)
		}
	}
}

func TestARefundOfASingleEffectExplainsNothing(t *testing.T) {
	t.Parallel()
	j := charged().state(recon.Succeeded).effects(charge("ch_1"), refundOf("ch_1")).judge(late, rules.PlaceSeen)
	if j.Class != rules.ClassMatched || len(j.Explained) != 0 {
		t.Errorf("judged %+v", j)
	}
}

func TestAPaymentWhoseDisputesWereLostIsReversed(t *testing.T) {
	t.Parallel()
	dispute := func(change ...func(*recon.Effect)) recon.Effect {
		return refundOf("ch_1", append([]func(*recon.Effect){status(recon.EffectFailed), func(e *recon.Effect) {
			e.ID, e.Kind, e.CausedBy = "dp_1", "dispute", "ch_1"
		}}, change...)...)
	}
	closed := func(d ...recon.Effect) *builder {
		return charged().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "ch_1" }).effects(charge("ch_1")).effects(d...)
	}
	demand(t, closed(dispute()).decide(late), wants{"reversed", recon.ManualReview, "", kinds(recon.FindReversed)})
	if j := closed(dispute()).judge(late, rules.PlaceSeen); j.Class != rules.ClassReversed {
		t.Errorf("judged %+v", j)
	}
	for name, d := range map[string]recon.Effect{
		"open":            dispute(status(recon.InFlight)),
		"won":             dispute(status(recon.Completed)),
		"of a part":       dispute(amount(4100)),
		"of another mode": dispute(func(e *recon.Effect) { e.Mode = "test" }),
		"of another one":  dispute(func(e *recon.Effect) { e.Parent = "ch_2" }),
	} {
		if got := closed(d).decide(late); got.To != recon.Succeeded || len(got.Findings) != 0 {
			t.Errorf("a dispute %s: %+v", name, got)
		}
	}
}
