package stripe

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// asked gives questions that reach back by minutes, each under a parent of its own.
func asked(minutes ...int) []sources.Question {
	var list []sources.Question
	for i, m := range minutes {
		list = append(list, sources.Question{Kind: kindRefund, Parent: fmt.Sprint("ch_", i), From: noon.Add(-time.Duration(m) * time.Minute)})
	}
	return list
}

func TestAPageIsReadOnlyWhereItPays(t *testing.T) {
	t.Parallel()
	sameParent := asked(1, 2, 3, 400)
	for i := range sameParent {
		sameParent[i].Parent = "ch_1"
	}
	alone := asked(500)
	alone[0].Parent = "order:7" // nothing that Stripe lists by
	tests := []struct {
		name      string
		questions []sources.Question
		perMinute float64 // negative: not known
		want      bool
	}{
		{"nothing is left", nil, 100, false},
		{"one question is one call", asked(1), 0.001, false},
		{"two young questions share a page", asked(1, 2), 10, true},
		{"two old questions do not", asked(100, 200), 100, false},
		{"many old questions do", asked(100, 110, 120, 130, 140), 3, true},
		{"a far group of many is worth the pages up to it", asked(90, 90, 90, 90, 90, 90, 90, 90, 90, 90), 10, true},
		{"questions under one parent are one call", sameParent, 10, false},
		{"a question that only a list answers forces it", alone, 1000, true},
		{"an unknown density is not probed for two", asked(1, 2), -1, false},
		{"an unknown density is probed for three", asked(1, 2, 3), -1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sources.Pays(reaches(tt.questions), noon, tt.perMinute/60, 100); got != tt.want {
				t.Errorf("pays = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAParentIsListedOnlyByWhatStripeListsBy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, parent, want string }{
		{kindRefund, "ch_1", "charge"}, {kindRefund, "py_1", "charge"}, {kindRefund, "pi_1", "payment_intent"},
		{kindRefund, "cus_1", ""}, {kindRefund, "order:1", ""}, {kindRefund, "", ""},
		{kindCharge, "pi_1", "payment_intent"}, {kindCharge, "cus_1", "customer"}, {kindCharge, "in_1", ""},
		{kindPaymentIntent, "cus_1", "customer"}, {kindPaymentIntent, "in_1", ""},
	} {
		one, ok := parentOf(sources.Question{Kind: tt.kind, Parent: tt.parent})
		if one.filter != tt.want || ok != (tt.want != "") {
			t.Errorf("%s under %q: filter %q, want %q", tt.kind, tt.parent, one.filter, tt.want)
		}
	}
}

func TestTheKeyIsLookedUpOnlyWhereItCanTellMore(t *testing.T) {
	t.Parallel()
	money := recon.Money{Minor: 500, Currency: "EUR"}
	q := sources.Question{Operation: "op-1", Key: "k", Money: money, From: noon, Marks: []recon.Mark{recon.MarkKey, recon.MarkReference}}
	bare := recon.Effect{ID: "re_1", Money: money, CreatedAt: noon}
	with := func(change func(*sources.Question, *recon.Effect)) bool {
		q, e := q, bare
		change(&q, &e)
		return sight([]recon.Effect{e}).wantsKey(q)
	}
	for _, tt := range []struct {
		name   string
		change func(*sources.Question, *recon.Effect)
		want   bool
	}{
		{"an equal effect without reference could be it", func(*sources.Question, *recon.Effect) {}, true},
		{"of an operation without amount any effect could be", func(q *sources.Question, _ *recon.Effect) { q.Money = recon.Money{} }, true},
		{"no key was sent", func(q *sources.Question, _ *recon.Effect) { q.Key = "" }, false},
		{"our reference was found", func(_ *sources.Question, e *recon.Effect) { e.Reference = "op-1" }, false},
		{"our group was found", func(q *sources.Question, e *recon.Effect) { q.Group, e.Reference = "g", "g" }, false},
		{"the known effect was found", func(q *sources.Question, _ *recon.Effect) { q.EffectID = "re_1" }, false},
		{"the amount differs", func(_ *sources.Question, e *recon.Effect) { e.Money.Minor = 7 }, false},
		{"the effect is older", func(_ *sources.Question, e *recon.Effect) { e.CreatedAt = noon.Add(-time.Hour) }, false},
		{"the effect is another operation's", func(_ *sources.Question, e *recon.Effect) { e.Reference = "op-2" }, false},
		{"no reference was sent", func(q *sources.Question, e *recon.Effect) { q.Marks, e.Reference = q.Marks[:1], "op-2" }, true},
	} {
		if got := with(tt.change); got != tt.want {
			t.Errorf("%s: wanted %t, want %t", tt.name, got, tt.want)
		}
	}
}
