package ledger

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var at0 = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

func effectOf(change ...func(*recon.Effect)) recon.Effect {
	e := recon.Effect{
		ID: "re_1", Source: "stripe-main", System: "stripe", Account: "acct_1", Mode: "live", Kind: "refund", Status: recon.Completed,
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, Parent: "pi_1", OtherParents: []string{"ch_1"}, CreatedAt: at0,
		Metadata: json.RawMessage(`{"op_id": "op-1", "n": 1}`),
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func TestMerge(t *testing.T) {
	t.Parallel()
	status := func(s recon.EffectStatus) func(*recon.Effect) { return func(e *recon.Effect) { e.Status = s } }
	amount := func(n int64) func(*recon.Effect) { return func(e *recon.Effect) { e.Money.Minor = n } }
	owned := func(e *recon.Effect) { e.Owner = "op-1" }
	doubt := func(e *recon.Effect) { e.NeedsRead = true }
	fee := func(n int64) func(*recon.Effect) { return func(e *recon.Effect) { e.Fee = &n } }
	key := func(e *recon.Effect) { e.Key = "k-1" }
	total := func(n int64) func(*recon.Effect) { return func(e *recon.Effect) { e.ParentTotal = &n } }
	tests := []struct {
		name      string
		have      recon.Effect
		see       recon.Effect
		read      bool
		at        time.Time // when it was seen; what is stored was seen at at0
		want      recon.Effect
		wantWrite bool
		wantDiff  []string // the fields kept in effect_changes
	}{
		{"a read that says the same changes nothing", effectOf(), effectOf(), true, at0.Add(1), effectOf(), false, nil},
		{"an event that says the same changes nothing", effectOf(), effectOf(), false, at0.Add(1), effectOf(), false, nil},
		{"the same metadata in another order changes nothing", effectOf(),
			effectOf(func(e *recon.Effect) { e.Metadata = json.RawMessage(`{"n":1,"op_id":"op-1"}`) }), true, at0.Add(1), effectOf(), false, nil},
		{"the same parents in another order change nothing", effectOf(func(e *recon.Effect) { e.OtherParents = []string{"a", "b"} }),
			effectOf(func(e *recon.Effect) { e.OtherParents = []string{"b", "a"} }), true, at0.Add(1),
			effectOf(func(e *recon.Effect) { e.OtherParents = []string{"a", "b"} }), false, nil},
		{"a read replaces, and the status it had is kept", effectOf(status(recon.InFlight)), effectOf(), true, at0.Add(1), effectOf(), true, []string{"status"}},
		{"a read may move the status back, since it is the truth", effectOf(), effectOf(status(recon.InFlight)), true, at0.Add(1),
			effectOf(status(recon.InFlight)), true, []string{"status"}},
		{"a read of another target replaces and tells no change", effectOf(), effectOf(func(e *recon.Effect) { e.Target = "order:9" }), true, at0.Add(1),
			effectOf(func(e *recon.Effect) { e.Target = "order:9" }), true, nil},
		{"a read that is older than what is stored replaces nothing and asks for a new one", effectOf(), effectOf(status(recon.InFlight)), true, at0.Add(-1),
			effectOf(doubt), true, []string{"status"}},
		{"an event tells the key that no list shows", effectOf(), effectOf(key), false, at0.Add(1), effectOf(key), true, nil},
		{"and so where something else is in doubt", effectOf(), effectOf(key, amount(4100)), false, at0.Add(1), effectOf(key, doubt), true, []string{"amount"}},
		{"an event replaces where it moves the status forward", effectOf(status(recon.InFlight)), effectOf(status(recon.EffectFailed)), false, at0.Add(1),
			effectOf(status(recon.EffectFailed)), true, []string{"status"}},
		{"an event never moves the status back", effectOf(), effectOf(status(recon.InFlight)), false, at0.Add(1), effectOf(doubt), true, []string{"status"}},
		{"an event that does not speak of the fee says nothing else", effectOf(fee(119)), effectOf(), false, at0.Add(1), effectOf(fee(119)), false, nil},
		{"an event that moves the status forward keeps the fee that is known", effectOf(fee(119)), effectOf(status(recon.Reversed)), false, at0.Add(1),
			effectOf(fee(119), status(recon.Reversed)), true, []string{"status"}},
		{"an event of another fee is a doubt", effectOf(fee(119)), effectOf(fee(0)), false, at0.Add(1), effectOf(fee(119), doubt), true, []string{"fee"}},
		{"a read without a fee takes none away", effectOf(fee(119)), effectOf(), true, at0.Add(1), effectOf(fee(119)), false, nil},
		{"a read of another fee replaces it", effectOf(fee(119)), effectOf(fee(0)), true, at0.Add(1), effectOf(fee(0)), true, nil},
		{"a read of another amount takes its fee away", effectOf(fee(119)), effectOf(amount(100)), true, at0.Add(1), effectOf(amount(100)), true, []string{"amount", "fee"}},
		{"a read never shows the key, and takes none away", effectOf(key), effectOf(), true, at0.Add(1), effectOf(key), false, nil},
		{"an event of a failure leaves its parent's total unknown", effectOf(total(4200)), effectOf(status(recon.EffectFailed)), false, at0.Add(1),
			effectOf(status(recon.EffectFailed)), true, []string{"parent_total", "status"}},
		{"an event of a success keeps its parent's total", effectOf(total(4200), status(recon.InFlight)), effectOf(), false, at0.Add(1),
			effectOf(total(4200)), true, []string{"status"}},
		{"failed and reversed are a tie, so the object is read", effectOf(status(recon.EffectFailed)), effectOf(status(recon.Reversed)), false, at0.Add(1),
			effectOf(status(recon.EffectFailed), doubt), true, []string{"status"}},
		{"an event of another amount is kept beside", effectOf(), effectOf(amount(100)), false, at0.Add(1), effectOf(doubt), true, []string{"amount"}},
		{"one that is in doubt already is not written again", effectOf(doubt), effectOf(amount(100)), false, at0.Add(1), effectOf(doubt), false, []string{"amount"}},
		{"a read ends the doubt", effectOf(doubt), effectOf(), true, at0.Add(1), effectOf(), true, nil},
		{"an event does not end the doubt", effectOf(doubt), effectOf(), false, at0.Add(1), effectOf(doubt), false, nil},
		{"the owner stays", effectOf(owned, status(recon.InFlight)), effectOf(), true, at0.Add(1), effectOf(owned), true, []string{"status"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := merge(held{effect: normal(tt.have), seenAt: at0}, seen{effect: tt.see, at: tt.at, read: tt.read})
			if d := cmp.Diff(normal(tt.want), got.effect); d != "" {
				t.Errorf("effect (-want +got):\n%s", d)
			}
			if got.write != tt.wantWrite {
				t.Errorf("write: got %v, want %v", got.write, tt.wantWrite)
			}
			var fields []string
			for k := range got.before {
				fields = append(fields, k)
			}
			slices.Sort(fields)
			if d := cmp.Diff(tt.wantDiff, fields); d != "" {
				t.Errorf("kept change (-want +got):\n%s", d)
			}
		})
	}
}

// genEffect draws one observation of the same effect.
func genEffect(t *rapid.T, name string) recon.Effect {
	return effectOf(func(e *recon.Effect) {
		e.Status = rapid.SampledFrom([]recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed}).Draw(t, name+" status")
		e.Money.Minor = rapid.Int64Range(1, 2).Draw(t, name+" amount")
		e.Target = rapid.SampledFrom([]string{"", "order:1"}).Draw(t, name+" target")
		e.OtherParents = rapid.SampledFrom([][]string{nil, {"ch_1"}, {"ch_1", "in_1"}}).Draw(t, name+" parents")
	})
}

func TestMergeLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		have := held{effect: normal(genEffect(t, "have")), seenAt: at0}
		have.effect.NeedsRead = rapid.Bool().Draw(t, "doubt")
		have.effect.Owner = rapid.SampledFrom([]string{"", "op-1"}).Draw(t, "owner")
		now := seen{effect: genEffect(t, "see"), at: at0.Add(time.Second), read: rapid.Bool().Draw(t, "read")}
		first := merge(have, now)
		switch {
		case first.effect.Owner != have.effect.Owner:
			t.Fatal("merging changed the owner")
		case !now.read && first.effect.Status.Rank() < have.effect.Status.Rank():
			t.Fatal("an event moved the status back")
		case now.read && !equalEffects(first.effect, normal(now.effect)):
			t.Fatal("a read did not replace what was stored")
		case !first.write && (!equalEffects(first.effect, have.effect) || first.effect.NeedsRead != have.effect.NeedsRead):
			t.Fatal("a change would not be written")
		case first.effect.Status != have.effect.Status && first.before == nil:
			t.Fatal("a change of status is not kept")
		}
		again := merge(held{effect: first.effect, seenAt: now.at}, now)
		if again.write || !cmp.Equal(again.effect, first.effect) {
			t.Fatalf("the same observation a second time changes something: %s", cmp.Diff(first.effect, again.effect))
		}
	})
}
