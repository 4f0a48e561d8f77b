package rules_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

func TestJudgeGivesTheFirstClassThatFits(t *testing.T) {
	t.Parallel()
	inFlight, failed, undone := status(recon.InFlight), status(recon.EffectFailed), status(recon.Reversed)
	unsent := func(o *recon.Operation) {
		o.State, o.SentAt, o.UnknownSince, o.LeaseUntil = recon.Pending, time.Time{}, time.Time{}, time.Time{}
	}
	open := func(k recon.FindingKind) recon.Finding {
		return recon.Finding{Kind: k, Certainty: recon.Proof, Operations: []recon.OperationID{"op_1"}, Source: "stripe-main"}
	}
	tests := []struct {
		name  string
		b     *builder
		place rules.Place
		want  rules.Class
		finds int
	}{
		{"nothing in a place that was not seen", lost().state(recon.Succeeded), rules.PlaceUnseen, rules.ClassUnseen, 0},
		{"nothing, and the account is not known", lost().op(func(o *recon.Operation) { o.Account = "" }), rules.PlaceSeen, rules.ClassUnseen, 0},
		{"an effect shows a place that was not seen whole", lost().effects(refund("re_1")), rules.PlaceUnseen, rules.ClassMatched, 0},
		{"live, none equal", lost().effects(refund("re_1", amount(1))), rules.PlaceSeen, rules.ClassMismatch, 1},
		{"another than the one it knows, for which nobody looked", knowing(refund("re_2")), rules.PlaceUnseen, rules.ClassUnseen, 0},
		{"another than the one it knows, which is to be looked for", knowing(refund("re_2")), rules.PlaceSeen, rules.ClassNotYet, 0},
		{"another than the one it knows, which is not there", knowing(refund("re_2")).looks(listed(late, refund("re_2"))), rules.PlaceSeen, rules.ClassMismatch, 1},
		{"another than the one it knows, and there are only the files", knowing(refund("re_2")).sheet(func(s *recon.Sheet) { *s = recon.Sheet{} }), rules.PlaceSeen, rules.ClassMismatch, 1},
		{"two live, none equal", lost().effects(refund("re_1", amount(1)), refund("re_2", amount(2))), rules.PlaceSeen, rules.ClassMismatch, 1},
		{"two live, one equal", lost().effects(refund("re_1"), refund("re_2", amount(2))), rules.PlaceSeen, rules.ClassDuplicate, 1},
		{"two live of a failed one", lost().state(recon.Failed).effects(refund("re_1"), refund("re_2")), rules.PlaceSeen, rules.ClassDuplicate, 2},
		{"reversed", lost().effects(refund("re_1", undone)), rules.PlaceSeen, rules.ClassReversed, 1},
		{"failed after success", lost().state(recon.Succeeded).effects(refund("re_1", failed)), rules.PlaceSeen, rules.ClassReversed, 1},
		{"reversed, then done again", lost().state(recon.Succeeded).effects(refund("re_1", undone), refund("re_2")), rules.PlaceSeen, rules.ClassMatched, 0},
		{"was failed, lives", lost().state(recon.Failed).effects(refund("re_1")), rules.PlaceSeen, rules.ClassConflict, 1},
		{"equal and completed", lost().effects(refund("re_1")), rules.PlaceSeen, rules.ClassMatched, 0},
		{"equal and in flight", lost().effects(refund("re_1", inFlight)), rules.PlaceSeen, rules.ClassInFlight, 0},
		{"equal and in flight for too long", lost().effects(refund("re_1", inFlight, after(-20*24*time.Hour))), rules.PlaceSeen, rules.ClassInFlight, 1},
		{"failed effects only", lost().effects(refund("re_1", failed)), rules.PlaceSeen, rules.ClassFailed, 0},
		{"failed without effects", lost().state(recon.Failed), rules.PlaceSeen, rules.ClassFailed, 0},
		{"succeeded without effect", lost().state(recon.Succeeded), rules.PlaceSeen, rules.ClassMissing, 1},
		{"absent after being sent", lost().policy(once).looks(listed(late)), rules.PlaceSeen, rules.ClassMissing, 1},
		{"never sent", lost().op(unsent), rules.PlaceSeen, rules.ClassNeverSent, 1},
		{"unknown for too long", lost(), rules.PlaceSeen, rules.ClassUnresolved, 1},
		{"young", lost().op(func(o *recon.Operation) { o.UnknownSince = late }), rules.PlaceSeen, rules.ClassNotYet, 0},
		{"young and never sent", lost().op(unsent).op(func(o *recon.Operation) { o.CreatedAt = late }), rules.PlaceSeen, rules.ClassNotYet, 0},
		{"a candidate does not count", lost().state(recon.Succeeded).effects(refund("re_9", unmarked)), rules.PlaceSeen, rules.ClassMissing, 1},
		{"it keeps the class of an open finding", lost().state(recon.Succeeded).open(open(recon.FindConflict)).effects(refund("re_1")), rules.PlaceSeen, rules.ClassConflict, 0},
		{"it keeps the class, and tells no more than it knew, while what it knows is to be looked for",
			knowing(refund("re_2"), refund("re_3")).state(recon.ManualReview).open(open(recon.FindMismatch)), rules.PlaceUnseen, rules.ClassMismatch, 0},
		{"an open finding of another kind keeps nothing", lost().open(open(recon.FindUnresolved)).effects(refund("re_1")), rules.PlaceSeen, rules.ClassMatched, 0},
		{"an ended finding keeps nothing", lost().open(recon.Finding{Kind: recon.FindConflict, State: recon.FindingEnded, Operations: []recon.OperationID{"op_1"}}).effects(refund("re_1")), rules.PlaceSeen, rules.ClassMatched, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := tt.b.judge(late, tt.place)
			if j.Class != tt.want || len(j.Findings) != tt.finds {
				t.Errorf("class %s with %d findings, want %s with %d", j.Class, len(j.Findings), tt.want, tt.finds)
			}
		})
	}
}

func TestWhatWouldBeReleasedIsMissingWithoutAWordOfRefusal(t *testing.T) {
	t.Parallel()
	j := lost().policy(once).looks(listed(late)).judge(late, rules.PlaceSeen)
	if want := "The refund of 42.00 EUR for order:1 is not at the provider: a complete look found nothing."; j.Reason != want {
		t.Errorf("reason %q, want %q", j.Reason, want)
	}
}

func TestLinkedEffectsHaveTheClassOfTheirOperation(t *testing.T) {
	t.Parallel()
	first, second, failed := refund("re_1"), refund("re_2", after(time.Minute)), refund("re_0", status(recon.EffectFailed))
	duplicate := lost().effects(second, first, failed).judge(late, rules.PlaceSeen)
	reversed := lost().state(recon.Succeeded).effects(failed).judge(late, rules.PlaceSeen)
	unseen := knowing(first).judge(late, rules.PlaceUnseen)
	for _, tt := range []struct {
		name string
		j    rules.Judged
		e    recon.Effect
		want rules.Class
	}{
		{"the kept one of a duplicate is matched", duplicate, first, rules.ClassMatched},
		{"the surplus one is the duplicate", duplicate, second, rules.ClassDuplicate},
		{"a failed one is failed", duplicate, failed, rules.ClassFailed},
		{"a failed one of a reversed operation is reversed", reversed, failed, rules.ClassReversed},
		{"one of an unseen operation was seen", unseen, first, rules.ClassNotYet},
	} {
		if got := rules.LinkedClass(tt.j, tt.e); got != tt.want {
			t.Errorf("%s: got %s", tt.name, got)
		}
	}
}

func TestEffectsWithoutOperation(t *testing.T) {
	t.Parallel()
	failed := refund("re_1", status(recon.EffectFailed))
	for _, tt := range []struct {
		name string
		e    recon.Effect
		o    rules.Ownership
		age  time.Duration
		want rules.Class
	}{
		{"one that follows from another is explained", failed, rules.Explained, 0, rules.ClassExplained},
		{"one of another mode is not ours", failed, rules.NotOurs, 0, rules.ClassNotOurs},
		{"one that failed moved nothing", failed, rules.Ours, 2 * time.Hour, rules.ClassFailed},
		{"a young one may still find its operation", refund("re_1"), rules.Ours, time.Hour - 1, rules.ClassNotYet},
		{"an old one is an orphan", refund("re_1"), rules.Ours, time.Hour, rules.ClassOrphan},
		{"a reversed one is an orphan too", refund("re_1", status(recon.Reversed)), rules.Ours, time.Hour, rules.ClassOrphan},
	} {
		if got := rules.UnlinkedClass(tt.e, tt.o, time.Hour, tt.e.CreatedAt.Add(tt.age)); got != tt.want {
			t.Errorf("%s: got %s", tt.name, got)
		}
	}
}
