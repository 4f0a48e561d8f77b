package rules_test

import (
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// late adds an answer that came when the lease was over.
func (b *builder) late(class recon.AttemptClass, effect string) *builder {
	b.c.Late = append(b.c.Late, recon.AttemptReport{Class: class, EffectID: effect})
	return b
}

func TestALateAnswerIsLookedForAndADisagreementTold(t *testing.T) {
	t.Parallel()
	knows := func(id string) func(*recon.Operation) { return func(o *recon.Operation) { o.EffectID = id } }
	for _, tt := range []struct {
		name  string
		given *builder
		want  wants
	}{
		{"unknown, and the sender says done", lost().late(recon.ClassSucceeded, "re_1").looks(listed(late)), wants{"late_answer", recon.Unknown, "re_1", nil}},
		{"released, and the sender says done", lost().state(recon.Pending).late(recon.ClassSucceeded, "re_1"), wants{"late_answer", recon.Unknown, "re_1", kinds(recon.FindConflict)}},
		{"failed, and the sender says done", lost().state(recon.Failed).late(recon.ClassSucceeded, "re_1"), wants{"wait", recon.Failed, "", kinds(recon.FindConflict)}},
		{"succeeded, and the sender was refused", lost().state(recon.Succeeded).op(knows("re_1")).late(recon.ClassRefused, "").effects(refund("re_1")), wants{"found", recon.Succeeded, "", kinds(recon.FindConflict)}},
		{"succeeded, and the sender made another", lost().state(recon.Succeeded).op(knows("re_1")).late(recon.ClassSucceeded, "re_2").effects(refund("re_1")), wants{"found", recon.Succeeded, "", kinds(recon.FindConflict)}},
		{"succeeded, and the sender says the same", lost().state(recon.Succeeded).op(knows("re_1")).late(recon.ClassSucceeded, "re_1").effects(refund("re_1")), wants{"found", recon.Succeeded, "", nil}},
		{"succeeded, and the sender does not know", lost().state(recon.Succeeded).op(knows("re_1")).late(recon.ClassIndeterminate, "").effects(refund("re_1")), wants{"found", recon.Succeeded, "", nil}},
		{"the effect is there, and judged by itself", lost().late(recon.ClassSucceeded, "re_1").effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			demand(t, tt.given.decide(late), tt.want)
		})
	}
}

func TestALateAnswerIsToldOnceAndGivesWayToTheEffect(t *testing.T) {
	t.Parallel()
	raised := lost().state(recon.Failed).late(recon.ClassSucceeded, "re_1").decide(late).Findings
	if len(raised) != 1 || !strings.Contains(raised[0].Reason, "says, after its time was over, that it made re_1") {
		t.Fatalf("findings %+v", raised)
	}
	again := lost().state(recon.Failed).late(recon.ClassSucceeded, "re_1").open(raised...).decide(late)
	if len(again.Findings) != 0 || len(again.Ends) != 0 {
		t.Errorf("told again: %+v", again)
	}
	settled := lost().state(recon.Failed).late(recon.ClassSucceeded, "re_1").settled(raised...).decide(late)
	if len(settled.Findings) != 0 {
		t.Errorf("told again after it was settled: %+v", settled)
	}
	seen := lost().state(recon.Failed).late(recon.ClassSucceeded, "re_1").open(raised...).effects(refund("re_1")).decide(late)
	demand(t, seen, wants{"conflict", recon.Succeeded, "re_1", kinds(recon.FindConflict)})
	if len(seen.Ends) != 1 || seen.Ends[0] != raised[0].Fingerprint() {
		t.Errorf("ends %v", seen.Ends)
	}
}
