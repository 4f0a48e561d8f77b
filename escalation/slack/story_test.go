package slack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// at reads a time of the night of the tests.
func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, "2026-03-01T"+s+"Z")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// unknownRefund is a refund whose answer was lost and that nobody could find since.
func unknownRefund(t testing.TB) escalation.Message {
	t.Helper()
	policy := recon.DefaultPolicy()
	policy.Action, policy.Effect, policy.Source = "refund.create", "refund", "stripe-main"
	policy.Repeat, policy.KeyLifetime = recon.RepeatSameKey, recon.Duration(24*time.Hour)
	op := recon.Operation{
		ID: "0195500a-7c1e-7000-8000-00000000a417", Source: "stripe-main", Action: "refund.create",
		Target: "order:4417", Parent: "pi_3Q4417", Money: recon.Money{Minor: 4200, Currency: "EUR"},
		State: recon.Unknown, Account: "acct_1", Mode: "live", Key: "key-that-nobody-needs-to-read",
		CreatedAt: at(t, "01:58:00"), SentAt: at(t, "01:58:02"), UnknownSince: at(t, "01:58:32"),
		KeyExpiresAt: at(t, "01:58:02").Add(24 * time.Hour), LastClass: recon.ClassIndeterminate,
		InDoubt: true, Attempts: 1, ErrorCode: "timeout talking about jane@example.com",
		Metadata: json.RawMessage(`{"customer":"jane@example.com"}`),
	}
	finding := recon.Finding{
		ID: "0195500b-0000-7000-8000-0000000000f1", Version: 3,
		Kind: recon.FindUnresolved, Source: "stripe-main", Operations: []recon.OperationID{op.ID},
		Reason: "its answer was lost, and 3 looks since have not found it", Money: op.Money,
		State: recon.FindingOpen, OpenedAt: at(t, "02:13:32"),
	}
	look := func(when string, l recon.Look) recon.Look {
		l.At, l.Source, l.Kind, l.Account, l.Mode = at(t, when), "stripe-main", "refund", "acct_1", "live"
		l.Detail = "No such customer: jane@example.com"
		return l
	}
	return escalation.Message{
		Notice: "notice-1", Act: recon.ActTell, About: finding, Now: at(t, "02:14:00"),
		Story: recon.Story{
			Operation: op, Policy: policy, Check: recon.Check{Next: at(t, "02:58:32"), Looks: 3},
			Looks: []recon.Look{
				look("01:59:02", recon.Look{Method: recon.ByReference, Reference: string(op.ID), Outcome: recon.Absent, Complete: true}),
				look("01:59:32", recon.Look{Method: recon.ByList, Parent: op.Parent, Outcome: recon.Absent, Complete: true}),
				look("02:03:32", recon.Look{Method: recon.ByKey, Key: op.Key, Outcome: recon.Blind, Fault: "rate_limited"}),
				look("02:13:32", recon.Look{Method: recon.ByList, Parent: op.Parent, Outcome: recon.Found, Complete: true,
					Found: []recon.EffectIdentity{{System: "stripe", Account: "acct_1", Mode: "live", ID: "re_other"}}}),
			},
			Findings: []recon.Finding{finding},
		},
	}
}

func effect(t testing.TB, id string, minor int64) recon.Effect {
	t.Helper()
	return recon.Effect{ID: id, Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed,
		Money: recon.Money{Minor: minor, Currency: "EUR"}, Parent: "pi_3Q4417", Account: "acct_1", Mode: "live",
		CreatedAt: at(t, "01:58:03"), FailureReason: "jane@example.com", Metadata: json.RawMessage(`{"name":"Jane Doe"}`)}
}

// messages are one of each kind that people get.
func messages(t testing.TB) map[string]escalation.Message {
	t.Helper()
	all := map[string]escalation.Message{"unresolved": unknownRefund(t)}

	m := unknownRefund(t)
	m.Repeat = true
	m.Now = at(t, "23:59:59").Add(5 * time.Hour)
	all["unresolved_repeat_key_over"] = m

	m = unknownRefund(t)
	m.About.Kind, m.About.Certainty = recon.FindMissing, recon.Proof
	m.About.Reason = "3 complete looks over 15 min found no refund with our reference"
	m.Story.Operation.State = recon.ManualReview
	m.Story.Findings = []recon.Finding{m.About}
	all["missing"] = m

	m = unknownRefund(t)
	m.About.Kind, m.About.Certainty = recon.FindMismatch, recon.Proof
	m.About.Reason = "re_4417 bears our reference, and its amount differs"
	m.About.Observed = []recon.Difference{{Field: "amount", Ours: "42.00 EUR", Theirs: "40.00 EUR"}, {Field: "parent", Ours: "pi_3Q4417"}}
	m.About.Effects = []recon.EffectRef{effect(t, "re_4417", 4000).Ref()}
	m.Story.Operation.State = recon.ManualReview
	m.Story.Effects = []recon.Effect{effect(t, "re_4417", 4000)}
	m.Story.Findings = []recon.Finding{m.About}
	all["mismatch"] = m

	m = unknownRefund(t)
	lesser := m.About
	m.About.Kind, m.About.Certainty = recon.FindDuplicate, recon.Proof
	m.About.Reason = "two refunds bear our reference; re_1 is the earliest that is equal"
	m.About.Effects = []recon.EffectRef{effect(t, "re_1", 4200).Ref(), effect(t, "re_2", 4200).Ref()}
	m.About.OpenedAt, lesser.OpenedAt = at(t, "02:13:32"), at(t, "02:13:32")
	lesser.Kind = recon.FindMismatch
	m.Story.Operation.State, m.Story.Operation.EffectID = recon.Succeeded, "re_1"
	m.Story.Effects = []recon.Effect{effect(t, "re_1", 4200), effect(t, "re_2", 4200)}
	m.Story.Findings = []recon.Finding{lesser, m.About}
	all["duplicate_names_mismatch"] = m

	m = unknownRefund(t)
	m.Act = recon.ActEdit
	m.Now = at(t, "02:31:10")
	m.About.State, m.About.EndedAt = recon.FindingEnded, at(t, "02:31:05")
	m.About.Ending = "re_4417 was found at stripe-main by our reference, completed and equal"
	m.Story.Operation.State, m.Story.Operation.EffectID = recon.Succeeded, "re_4417"
	m.Story.Effects = []recon.Effect{effect(t, "re_4417", 4200)}
	m.Story.Looks = append(m.Story.Looks, recon.Look{At: at(t, "02:31:05"), Source: "stripe-main", Kind: "refund",
		Method: recon.ByList, Parent: "pi_3Q4417", Outcome: recon.Found, Complete: true,
		Found: []recon.EffectIdentity{effect(t, "re_4417", 4200).Identity()}})
	m.Story.Findings = []recon.Finding{m.About}
	all["ended"] = m

	// It ended because it became something worse, which has a message of its own.
	m = unknownRefund(t)
	m.Act = recon.ActEdit
	m.Now = at(t, "02:31:10")
	m.About.State, m.About.EndedAt = recon.FindingEnded, at(t, "02:31:05")
	m.About.Ending = "it is no longer unknown: it is missing"
	m.Story.Operation.State = recon.ManualReview
	worse := m.About
	worse.Kind, worse.State, worse.OpenedAt, worse.EndedAt, worse.Ending = recon.FindMissing, recon.FindingOpen, at(t, "02:31:05"), time.Time{}, ""
	m.Story.Findings = []recon.Finding{m.About, worse}
	all["ended_became_missing"] = m
	return all
}
