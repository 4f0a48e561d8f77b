package slack

import (
	"encoding/json"
	"fmt"
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
			Operation: op, Policy: policy, Kept: true, Check: recon.Check{Next: at(t, "02:58:32"), Looks: 3},
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
	m := unknownRefund(t)
	m.Next = &escalation.Upcoming{At: at(t, "02:58:32"), To: "payments-recon", Mention: "oncall"}
	all := map[string]escalation.Message{"unresolved": m}

	m = unknownRefund(t)
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

	m = unknownRefund(t)
	m.About.State, m.About.Version = recon.FindingAcknowledged, 4
	m.Assignee, m.PausedUntil = "ana", at(t, "06:13:32")
	m.Proposal = &recon.Proposal{Verb: recon.Happened, Person: "ana", At: at(t, "02:13:50"), Two: recon.TwoForAmount, Effect: "re_4417"}
	m.Story.Findings = []recon.Finding{m.About}
	all["acknowledged"] = m

	m = unknownRefund(t)
	m.Refused = "payments-recon"
	all["stands_in"] = m
	for name, m := range foundByItself(t) {
		all[name] = m
	}
	for name, m := range manyAtOnce(t) {
		all[name] = m
	}
	return all
}

// foundByItself are messages of what no operation explains, or may explain.
func foundByItself(t testing.TB) map[string]escalation.Message {
	orphan := effect(t, "re_B1", 1500)
	orphan.Parent, orphan.CreatedBy, orphan.FailureReason, orphan.Metadata = "ch_B", "dashboard", "", nil
	orphan.CreatedAt = at(t, "01:12:00")
	m := escalation.Message{Notice: "notice-2", Act: recon.ActTell, Now: at(t, "02:14:00"), About: recon.Finding{
		ID: "0195500b-0000-7000-8000-0000000000f2", Version: 1, Kind: recon.FindOrphan, Certainty: recon.Proof, Source: "stripe-main",
		Effects: []recon.EffectRef{orphan.Ref()}, Reason: "nobody asked for refund re_B1: it bears no reference and no key of ours",
		Money: orphan.Money, State: recon.FindingOpen, OpenedAt: at(t, "02:13:00"),
	}, Story: recon.Story{Effects: []recon.Effect{orphan}}}
	m.Story.Findings = []recon.Finding{m.About}
	all := map[string]escalation.Message{"B02_orphan": m}

	m = unknownRefund(t)
	m.About.Reason = "its answer was lost, and 3 looks since have not found it; not proven, but it could be re_x1 (completed, same parent, amount and currency), re_x2 (completed, same parent, amount and currency) or re_x3 (completed, same parent, amount and currency)"
	m.Story.Findings = []recon.Finding{m.About}
	all["B39_several_candidates"] = m
	return all
}

// manyAtOnce are messages about many findings.
func manyAtOnce(t testing.TB) map[string]escalation.Message {
	about := func(i recon.Incident) escalation.Message {
		return escalation.Message{Notice: "notice-3", Act: recon.ActTell, Now: at(t, "03:14:00"), Incident: &i}
	}
	crowd := recon.Incident{
		ID: "i1", Source: "stripe-main", Kind: recon.FindUnresolved, OpenedAt: at(t, "02:14:00"), JoinedAt: at(t, "02:20:00"),
		Total: 75, Open: 73, Succeeded: 2, Oldest: at(t, "01:58:32"), KeyExpires: at(t, "01:58:02").Add(24 * time.Hour),
		Money: []recon.Money{{Minor: 306600, Currency: "EUR"}, {Minor: 42000, Currency: "JPY"}},
	}
	for n := range 10 {
		crowd.Top = append(crowd.Top, recon.Member{Finding: "f", Operation: recon.OperationID(fmt.Sprintf("0195500a-7c1e-7000-8000-00000000a4%02d", n)),
			Target: fmt.Sprintf("order:44%02d", n), Money: recon.Money{Minor: 4200, Currency: "EUR"}, Since: at(t, "01:58:32").Add(time.Duration(n) * time.Minute)})
	}
	outage := crowd
	outage.Kind, outage.DownSince, outage.Fault = recon.FindBlind, at(t, "02:00:00"), "stripe-main could not be asked since 02:00: it did not answer"
	outage.Total, outage.Open, outage.Succeeded = 10_000, 10_000, 0
	back := outage
	back.DownSince, back.UpSince, back.Open, back.Succeeded = time.Time{}, at(t, "03:10:00"), 4_120, 5_800
	over := back
	over.EndedAt, over.FullAt, over.Open, over.Succeeded = at(t, "03:13:00"), at(t, "03:13:00"), 3, 9_997
	digest := escalation.Message{Notice: "notice-4", Act: recon.ActTell, Now: at(t, "08:00:00"), Digest: &recon.Digest{
		Day: "2026-03-01", From: at(t, "08:00:00").AddDate(0, 0, -1), At: at(t, "08:00:00"), Opened: 15, Ended: 12, Undelivered: 1, Down: []recon.SourceName{"files-bank"},
		Kinds: []recon.DigestKind{
			{Kind: recon.FindDuplicate, Open: 1, Assigned: 1, Oldest: at(t, "01:12:00"), Money: []recon.Money{{Minor: 4200, Currency: "EUR"}}, Opened: 1},
			{Kind: recon.FindUnresolved, Open: 3, Oldest: at(t, "01:58:32").AddDate(0, 0, -2), Money: []recon.Money{{Minor: 12600, Currency: "EUR"}, {Minor: 900, Currency: "USD"}}, Opened: 14, Ended: 12},
		}}}
	quiet := digest
	quiet.Digest = &recon.Digest{Day: "2026-03-01", From: digest.Digest.From, At: digest.Digest.At}
	report := escalation.Message{Notice: "notice-5", Act: recon.ActTell, Now: at(t, "03:00:00"), Report: &recon.DayReport{
		Day: "2026-02-28", Zone: "Europe/Berlin", Verdict: "2 findings waited for a person when the ledger was read. Not all of the range was audited.",
		Operations: 1_204, Effects: 1_207, Page: "/srv/reports/report-2026-02-28.html",
		Findings: []recon.DayFindings{{Kind: recon.FindDuplicate, Open: 1}, {Kind: recon.FindMissing, Open: 1, Over: 3}},
		Money: []recon.DayMoney{
			{Currency: "EUR", Count: 1_200, Minor: 5_040_000, DoneCount: 1_196, DoneMinor: 5_023_200},
			{Currency: "JPY", Count: 4, Minor: 42_000},
		},
		Gaps: []string{"Not audited: files-bank, 2026-02-28 00:00:00 CET to 2026-03-01 00:00:00 CET: no finished audit covers it",
			"Down: files-bank, since 2026-02-28 22:10:00 CET: <!channel> the provider could not be asked"}, MoreGaps: 2,
	}}
	fine := report
	fine.Report = &recon.DayReport{Day: "2026-02-28", Zone: "UTC", Verdict: "All that was there is accounted for.", Operations: 1, Effects: 1,
		Money: []recon.DayMoney{{Currency: "EUR", Count: 1, Minor: 4200, DoneCount: 1, DoneMinor: 4200}}, Page: "reports/report-2026-02-28.html"}
	return map[string]escalation.Message{
		"report": report, "report_of_a_fine_day": fine,
		"B31_seventy_three_at_once": about(crowd), "outage": about(outage), "outage_answers_again": about(back), "outage_over": about(over),
		"digest": digest, "digest_of_a_quiet_day": quiet,
	}
}
