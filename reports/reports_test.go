package reports

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (write it anew with -update):\n%s", path, d)
	}
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, "2026-03-01T"+s+"Z")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func entry(t testing.TB, seq int64, when string, kind recon.EntryKind, body string) recon.Entry {
	t.Helper()
	return recon.Entry{Seq: seq, At: at(t, when), Kind: kind, Body: json.RawMessage(body)}
}

// closedRefund was unknown for half an hour, then found.
func closedRefund(t testing.TB) recon.Story {
	t.Helper()
	policy := recon.DefaultPolicy()
	policy.Action, policy.Effect, policy.Source = "refund.create", "refund", "stripe-main"
	policy.KeyLifetime = recon.Duration(24 * time.Hour)
	step := int64(2)
	op := recon.Operation{
		ID: "0195500a-7c1e-7000-8000-00000000a417", Source: "stripe-main", Action: "refund.create", Target: "order:4417",
		Parent: "pi_3Q4417", Key: "9f2c7e0d5b", Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.Succeeded,
		CreatedAt: at(t, "01:58:00"), SentAt: at(t, "01:58:02"), ClosedAt: at(t, "02:31:05"), EffectID: "re_4417",
		Account: "acct_1", Mode: "live", Case: "ticket:88", Step: &step, Run: "run_7", ToolCall: "call_12",
		UnknownSince: at(t, "01:58:32"), KeyExpiresAt: at(t, "01:58:02").Add(24 * time.Hour),
		LastClass: recon.ClassIndeterminate, InDoubt: true, Attempts: 1, ErrorCode: "timeout",
	}
	effect := recon.Effect{ID: "re_4417", Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed,
		Money: op.Money, Parent: "pi_3Q4417", Reference: string(op.ID), CreatedAt: at(t, "01:58:03"), Account: "acct_1", Mode: "live"}
	look := func(id, when string, l recon.Look) recon.Look {
		l.ID, l.At, l.Source, l.Kind, l.Account, l.Mode, l.Detail = id, at(t, when), "stripe-main", "refund", "acct_1", "live", "No such customer: jane@example.com"
		return l
	}
	return recon.Story{
		Operation: op, Policy: policy, Check: recon.Check{Next: at(t, "02:31:05").Add(24 * time.Hour), Looks: 3, Blinds: 0},
		Journal: []recon.Entry{
			entry(t, 1, "01:58:00", recon.EntryOpened, `{"by":"refund-agent","to":"pending","amount":4200}`),
			entry(t, 2, "01:58:02", recon.EntryStarted, `{"attempt":1,"holder":"worker-3","from":"pending","to":"in_progress","lease_until":"2026-03-01T01:59:02Z"}`),
			entry(t, 3, "01:58:32", recon.EntryFinished, `{"attempt":1,"applied":true,"class":"indeterminate","error_code":"timeout","from":"in_progress","to":"unknown"}`),
			entry(t, 4, "01:59:02", recon.EntrySeen, `{"rule":"absent","reason":"No refund with our reference was there.","from":"unknown","to":"unknown","look_ids":["l1","l2"]}`),
			entry(t, 5, "02:13:32", recon.EntryDecision, `{"rule":"unresolved","reason":"Unknown for more than 15 min.","from":"unknown","to":"unknown","look_ids":["l2","l3"],"findings":[{"kind":"unresolved"}]}`),
			entry(t, 6, "02:31:05", recon.EntryDecision, `{"rule":"found","reason":"One completed refund by our reference, equal in everything compared.","from":"unknown","to":"succeeded","effect_id":"re_4417","look_ids":["l4"],"ended":[{"kind":"unresolved"}]}`),
			entry(t, 7, "02:31:09", recon.EntryFinished, `{"applied":false,"class":"succeeded","effect_id":"re_4417","request_id":"req_9","from":"succeeded","to":"succeeded"}`),
		},
		Looks: []recon.Look{
			look("l1", "01:59:02", recon.Look{Method: recon.ByReference, Reference: string(op.ID), Outcome: recon.Absent, Complete: true}),
			look("l2", "01:59:02", recon.Look{Method: recon.ByKey, Key: op.Key, Outcome: recon.Blind, Fault: "rate_limited"}),
			look("l3", "02:13:32", recon.Look{Method: recon.ByList, Outcome: recon.Absent, Complete: true, Window: recon.Window{From: at(t, "01:53:02"), To: at(t, "02:13:32")}}),
			look("l4", "02:31:05", recon.Look{Method: recon.ByList, Parent: "pi_3Q4417", Outcome: recon.Found, Complete: true, Found: []recon.EffectIdentity{effect.Identity()}}),
		},
		Effects: []recon.Effect{effect},
		Findings: []recon.Finding{{
			ID: "f1", Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{op.ID},
			Reason: "unknown for more than 15 min", State: recon.FindingEnded, OpenedAt: at(t, "02:13:32"), EndedAt: at(t, "02:31:05"),
			Ending: "one completed refund by our reference, equal in everything compared",
		}},
	}
}

// openRefund is the same one while nobody knew.
func openRefund(t testing.TB) recon.Story {
	s := closedRefund(t)
	s.Operation.State, s.Operation.EffectID, s.Operation.ClosedAt = recon.Unknown, "", time.Time{}
	s.Journal, s.Looks, s.Effects = s.Journal[:5], s.Looks[:3], nil
	s.Check = recon.Check{Next: at(t, "02:58:32"), Looks: 2, Blinds: 1}
	s.Findings[0].State, s.Findings[0].EndedAt, s.Findings[0].Ending = recon.FindingOpen, time.Time{}, ""
	return s
}

func TestTheStoryOfAnOperationIsReadOnOneScreen(t *testing.T) {
	t.Parallel()
	long := openRefund(t)
	for i := range 100 {
		long.Journal = append(long.Journal, entry(t, int64(6+i), "02:20:00", recon.EntrySeen, `{"reason":"Could not look."}`))
	}
	odd := openRefund(t)
	odd.Operation.Target, odd.Operation.UnknownSince, odd.Operation.Account = "order:\x1b[31m1\u202e", time.Time{}, ""
	odd.Operation.Money, odd.Check.Next = recon.Money{}, time.Time{}
	odd.Findings[0].Kind, odd.Findings[0].State = recon.FindMismatch, ""
	odd.Findings[0].Observed = []recon.Difference{{Field: "amount", Ours: "42.00 EUR", Theirs: strings.Repeat("9", 180)}}
	odd.Journal = []recon.Entry{entry(t, 1, "02:00:00", "of_tomorrow", `{"reason":"x"}`), entry(t, 2, "02:00:00", recon.EntryPerson, `not json`)}
	odd.Looks = nil
	for name, s := range map[string]recon.Story{"closed": closedRefund(t), "open": openRefund(t), "long": long, "odd": odd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Story(&b, s, at(t, "02:40:00"), berlin(t)); err != nil {
				t.Fatal(err)
			}
			checkPage(t, b.String())
			golden(t, "story_"+name+".txt", b.Bytes())
		})
	}
}

func TestTheStoryAsJSONLeavesNothingOut(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := StoryJSON(&b, closedRefund(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, "story.json", b.Bytes())
	b.Reset()
	if err := StoryJSON(&b, recon.Story{Operation: closedRefund(t).Operation}); err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"journal", "effects", "findings", "looks"} {
		if got := string(doc[name]); got != "[]" {
			t.Errorf("an empty %s is %s, want []", name, got)
		}
	}
	if got := string(doc["next_check"]); got != "null" {
		t.Errorf("no next check is %s, want null", got)
	}
}

func TestB100_NoPersonalDataOfALookOnAPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := Story(&b, closedRefund(t), at(t, "02:40:00"), nil); err != nil {
		t.Fatal(err)
	}
	if err := StoryJSON(&b, closedRefund(t)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "jane") {
		t.Error("the detail of a look is shown")
	}
}

func TestSweepsAreToldSourceBySource(t *testing.T) {
	t.Parallel()
	stripe := Sweep{RunID: "r1", Source: "stripe-main", Claimed: 1312, Succeeded: 1290, Failed: 3, Released: 1, ManualReview: 2, Kept: 9,
		Blind: 4, BlindReason: "it refused our credentials (GET /v1/account: 401)", Lost: 2, SetAside: 1, ProviderCalls: 14, DurationMS: 2345, Findings: map[recon.FindingKind]int{recon.FindUnresolved: 9, recon.FindMismatch: 2, recon.FindOrphan: 0}}
	bank := Sweep{RunID: "r2", Source: "bank-giro", ProviderCalls: 1, DurationMS: 75_000}
	tests := []struct {
		name   string
		runs   []Sweep
		manner Manner
	}{
		{"several", []Sweep{stripe, bank}, Done}, {"dry_run", []Sweep{stripe}, DryRun}, {"none", nil, Done},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Sweeps(&b, tt.runs, tt.manner); err != nil {
				t.Fatal(err)
			}
			checkPage(t, b.String())
			golden(t, "sweeps_"+tt.name+".txt", b.Bytes())
			b.Reset()
			if err := SweepsJSON(&b, tt.runs); err != nil {
				t.Fatal(err)
			}
			golden(t, "sweeps_"+tt.name+".json", b.Bytes())
		})
	}
}

func TestOperationsAreListed(t *testing.T) {
	t.Parallel()
	a, b := closedRefund(t).Operation, openRefund(t).Operation
	b.ID, b.Money, b.Target = recon.OperationID(strings.Repeat("imported-", 20)), recon.Money{Minor: 500, Currency: "JPY"}, strings.Repeat("order ", 40)
	c := a
	c.ID, c.Money, c.Target = "op_1", recon.Money{}, "a\x1b[2Jb"
	var out bytes.Buffer
	if err := Operations(&out, []recon.Operation{a, b, c}, at(t, "02:40:00"), nil); err != nil {
		t.Fatal(err)
	}
	checkPage(t, out.String())
	golden(t, "operations.txt", out.Bytes())
	out.Reset()
	if err := OperationsJSON(&out, nil); err != nil || out.String() != "[]\n" {
		t.Errorf("no operations are %q (%v), want []", out.String(), err)
	}
}

func comparison(t testing.TB) Comparison {
	t.Helper()
	op, e := closedRefund(t).Operation, closedRefund(t).Effects[0]
	dear := op
	dear.ID, dear.Money.Minor, dear.Target = "op_dear", 1_250_000, "order:9"
	half := e
	half.ID, half.Money.Minor = "re_half", 1_249_900
	yen := op
	yen.ID, yen.Money = "op_yen", recon.Money{Minor: 90000, Currency: "JPY"}
	old := op
	old.ID, old.CreatedAt = "op_old", op.CreatedAt.Add(-240*time.Hour)
	orphan := e
	orphan.ID, orphan.Reference = "re_orphan", ""
	find := func(k recon.FindingKind, m recon.Money, reason string, observed ...recon.Difference) recon.Finding {
		return recon.Finding{Kind: k, Certainty: recon.Proof, Source: "stripe-main", Money: m, Reason: reason, Observed: observed}
	}
	return Comparison{
		From: at(t, "00:00:00"), To: at(t, "00:00:00").Add(31 * 24 * time.Hour), Now: at(t, "00:00:00").Add(32 * 24 * time.Hour),
		Operations: 1969, Effects: 1972, Repeated: 5,
		OperationClasses: map[string]int{"matched": 1960, "missing": 2, "mismatch": 1, "duplicate": 0, "unresolved": 6, "not_yet": 0},
		EffectClasses:    map[string]int{"matched": 1961, "orphan": 10, "mismatch": 1, "explained": 0, "duplicate": 0},
		Findings: []Compared{
			{find(recon.FindMissing, op.Money, "succeeded, and a complete look found no refund"), []recon.Operation{op}, nil},
			{find(recon.FindMissing, yen.Money, "succeeded, and a complete look found no refund"), []recon.Operation{yen}, nil},
			{find(recon.FindOrphan, recon.Money{}, "no operation names it"), nil, []recon.Effect{orphan}},
			{find(recon.FindMissing, old.Money, "succeeded, and a complete look found no refund"), []recon.Operation{old}, nil},
			{find(recon.FindMismatch, dear.Money, "it bears our reference, and its amount differs", recon.Difference{Field: "amount", Ours: "12,500.00 EUR", Theirs: "12,499.00 EUR"}),
				[]recon.Operation{dear}, []recon.Effect{half}},
		},
		Unseen: []Unseen{{Source: "bank-giro", From: at(t, "00:00:00"), To: at(t, "06:00:00"), Why: "no effect line names it"}},
	}
}

func TestAComparisonTellsTotalsThenTheDearestFirst(t *testing.T) {
	t.Parallel()
	c := comparison(t)
	c.Zone = berlin(t)
	many := c
	many.Unseen = nil
	for range 120 {
		many.Findings = append(many.Findings[:len(many.Findings):len(many.Findings)], c.Findings[0])
	}
	byID := c
	byID.Findings = []Compared{{Finding: recon.Finding{Kind: recon.FindDuplicate, Certainty: recon.Suspected, Source: "stripe-main",
		Operations: []recon.OperationID{"op_1", "op_2"}, Effects: []recon.EffectRef{{Source: "stripe-main", Account: "acct_1", Mode: "live", Kind: "refund", ID: "re_1"}},
		Reason: "the same refund was asked for twice within 60 s", Money: recon.Money{Minor: 4200, Currency: "EUR"}}}}
	clean := Comparison{Now: c.Now, Operations: 1, Effects: 1, OperationClasses: map[string]int{"matched": 1}, EffectClasses: map[string]int{"matched": 1}}
	for name, c := range map[string]Comparison{"findings": c, "many": many, "by_id": byID, "clean": clean} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Compare(&b, c); err != nil {
				t.Fatal(err)
			}
			checkPage(t, b.String())
			golden(t, "comparison_"+name+".txt", b.Bytes())
		})
	}
}

func TestTheOrderOfFindingsDoesNotDependOnTheOrderTheyCameIn(t *testing.T) {
	t.Parallel()
	c := comparison(t)
	var want bytes.Buffer
	if err := Compare(&want, c); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		shuffled := c
		shuffled.Findings = rapid.Permutation(c.Findings).Draw(rt, "order")
		var got bytes.Buffer
		if err := Compare(&got, shuffled); err != nil {
			rt.Fatal(err)
		}
		if got.String() != want.String() {
			rt.Fatalf("differs:\n%s", cmp.Diff(want.String(), got.String()))
		}
	})
}

// checkPage fails when a page is too wide or could steer a terminal.
func checkPage(t interface{ Errorf(string, ...any) }, s string) {
	for i, l := range strings.Split(s, "\n") {
		if n := utf8.RuneCountInString(l); n > Width {
			t.Errorf("line %d has %d columns: %q", i+1, n, l)
		}
		for _, r := range l {
			if !unicode.IsPrint(r) {
				t.Errorf("line %d holds %U", i+1, r)
			}
		}
	}
}

func FuzzStory(f *testing.F) {
	base := openRefund(f)
	f.Add("order:1\x1b[2J", "op\u202e", `{"by":"a\u0000","reason":"x"}`)
	f.Add(strings.Repeat("x", 300), "", `{"reason":1}`)
	f.Fuzz(func(t *testing.T, target, id, body string) {
		s := base
		s.Operation.Target, s.Operation.Parent, s.Operation.Key = target, id, target
		s.Operation.ID, s.Operation.Source = recon.OperationID(id), recon.SourceName(target)
		s.Journal = append([]recon.Entry{{Seq: 1, At: s.Operation.CreatedAt, Kind: recon.EntryDecision, Body: json.RawMessage(body)}}, s.Journal...)
		s.Findings = []recon.Finding{{Kind: recon.FindingKind(id), Reason: target, Observed: []recon.Difference{{Field: id, Ours: target}}}}
		var b bytes.Buffer
		if err := Story(&b, s, s.Operation.CreatedAt.Add(time.Hour), nil); err != nil {
			t.Fatal(err)
		}
		checkPage(t, b.String())
	})
}

func TestAnOrphanDiffersFromNothing(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := Compare(&b, Comparison{Effects: 1, Findings: []Compared{{Finding: recon.Finding{
		Kind: recon.FindOrphan, Certainty: recon.Proof, Observed: []recon.Difference{{Field: "status", Theirs: "completed"}},
	}}}})
	if err != nil || strings.Contains(b.String(), "differs") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

func TestTheShareOfAGroupsEffectIsTold(t *testing.T) {
	t.Parallel()
	s := closedRefund(t)
	s.Operation.Group, s.Effects[0].Owner = "batch-1", "batch-1"
	s.Effects[0].Money.Minor = 6000
	s.Shares = map[recon.EffectIdentity]int64{s.Effects[0].Identity(): 1000}
	var page, doc bytes.Buffer
	if err := Story(&page, s, at(t, "02:40:00"), berlin(t)); err != nil {
		t.Fatal(err)
	}
	if want := "60.00 EUR for group batch-1, 10.00 EUR of it for this operation"; !strings.Contains(strings.Join(strings.Fields(page.String()), " "), want) {
		t.Errorf("the page does not say %q:\n%s", want, page.String())
	}
	if err := StoryJSON(&doc, s); err != nil {
		t.Fatal(err)
	}
	if want := `"amount": 1000`; !strings.Contains(doc.String(), `"shares"`) || !strings.Contains(doc.String(), want) {
		t.Errorf("the document:\n%s", doc.String())
	}
}

// An operation that was closed without asking says what it was concluded from: "not yet"
// would say that nothing is known.
func TestAnOperationClosedWithoutAskingSaysWhatItRestsOn(t *testing.T) {
	t.Parallel()
	look := func(m recon.Method) []recon.Look {
		return []recon.Look{{ID: "look_9", Source: "bank", Method: m, Outcome: recon.Found, Complete: true}}
	}
	closing := func(k recon.EntryKind, from string) []recon.Entry {
		return []recon.Entry{
			entry(t, 1, "01:58:00", recon.EntryOpened, `{"by":"import","to":"`+from+`"}`),
			entry(t, 2, "02:31:05", k, `{"from":"`+from+`","to":"succeeded","look_ids":["look_9"]}`),
			entry(t, 3, "02:40:00", recon.EntryPerson, `{"verb":"accept","from":"succeeded","to":"succeeded"}`),
		}
	}
	for name, c := range map[string]struct {
		journal []recon.Entry
		looks   []recon.Look
		blinds  int
		want    string
	}{
		"stored effects":   {closing(recon.EntryDecision, "unknown"), look(recon.ByStored), 0, "not needed: it was among the effects that are stored, such as imported ones"},
		"files":            {closing(recon.EntryDecision, "unknown"), look(recon.ByFile), 0, "not needed: it was in the imported files of bank"},
		"an event":         {closing(recon.EntryDecision, "unknown"), look(recon.ByEvent), 0, "not needed: the provider told it by an event"},
		"after an outage":  {closing(recon.EntryDecision, "unknown"), look(recon.ByStored), 2, "such as imported ones; tried 2 times, and could not look"},
		"the sender":       {closing(recon.EntryFinished, "in_progress"), nil, 0, "not needed: its sender was told"},
		"a person":         {closing(recon.EntryPerson, "manual_review"), nil, 0, "not needed: a person said what came of it"},
		"closed elsewhere": {closing(recon.EntryDecision, "succeeded")[:1], nil, 0, "not here: it was closed when it was recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := closedRefund(t)
			s.Journal, s.Looks, s.Check = c.journal, c.looks, recon.Check{Blinds: c.blinds}
			var b bytes.Buffer
			if err := Story(&b, s, at(t, "03:00:00"), nil); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, c.want) || strings.Contains(text, "not yet") {
				t.Errorf("want %q in:\n%s", c.want, b.String())
			}
		})
	}
}
