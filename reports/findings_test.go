package reports

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// proposed is the open refund's finding while one person's word waits for a second one.
func proposed(t testing.TB) FindingStory {
	t.Helper()
	story := openRefund(t)
	story.Kept, story.Policy.PerOperation = true, 6
	story.Journal = append(story.Journal,
		entry(t, 6, "02:20:00", recon.EntryPerson, `{"by":"olga","via":"slack","verb":"acknowledge","finding_kind":"unresolved","until":"2026-03-01T06:20:00Z","reason":"asked the bank","from":"unknown","to":"unknown"}`),
		entry(t, 7, "02:31:00", recon.EntryPerson, `{"by":"ana","via":"command line","verb":"happened","proposed":true,"effect_id":"re_9","finding_kind":"unresolved","reason":"seen on the bank's screen","from":"unknown","to":"unknown"}`))
	f := story.Findings[0]
	f.State, f.Version, f.Money = recon.FindingAcknowledged, 3, story.Operation.Money
	f.ID = "0195500b-1111-7000-8000-000000000001"
	until := at(t, "06:20:00")
	return FindingStory{
		FindingRow: FindingRow{Finding: f, Level: 1, Assignee: "olga", AcknowledgedUntil: until, Proposal: &recon.Proposal{
			Verb: recon.Happened, Person: "ana", At: at(t, "02:31:00"), Reason: "seen on the bank's screen", Two: recon.TwoForNotFound, Effect: "re_9", Operation: story.Operation.ID,
		}},
		Stories: []recon.Story{story},
		Acts: []recon.PersonAct{
			{At: at(t, "02:20:00"), Person: "olga", Verb: recon.Acknowledge, Via: "slack", Reason: "asked the bank", Until: &until},
			{At: at(t, "02:31:00"), Person: "ana", Verb: recon.Happened, Via: "command line", Proposed: true, Two: recon.TwoForNotFound, Effect: "re_9", Reason: "seen on the bank's screen"},
		},
	}
}

// adoptable is an effect that no operation explains.
func adoptable(t testing.TB) FindingStory {
	t.Helper()
	e := recon.Effect{ID: "re_B1", Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed, Parent: "ch_B",
		Money: recon.Money{Minor: 1500, Currency: "EUR"}, CreatedAt: at(t, "01:12:00"), Account: "acct_1", Mode: "live", CreatedBy: "support"}
	return FindingStory{Effects: []recon.Effect{e}, FindingRow: FindingRow{Finding: recon.Finding{
		ID: "0195500b-1111-7000-8000-000000000002", Kind: recon.FindOrphan, Certainty: recon.Proof, State: recon.FindingOpen, Source: "stripe-main", Effects: []recon.EffectRef{e.Ref()},
		Money: e.Money, Reason: "A refund of 15.00 EUR under ch_B was made and no operation explains it.", OpenedAt: at(t, "02:00:00"), Version: 1,
		Observed: []recon.Difference{{Field: "status", Theirs: "completed"}},
	}}}
}

// settled is a finding that two people settled.
func settledByTwo(t testing.TB) FindingStory {
	s := proposed(t)
	s.State, s.Proposal, s.SettledAt, s.SettledBy, s.SettledAs = recon.FindingSettled, nil, at(t, "02:35:00"), "bob", "happened"
	s.Ending = "ana and bob settled it as happened: seen on the bank's screen"
	s.Acts = append(s.Acts, recon.PersonAct{At: at(t, "02:35:00"), Person: "bob", Verb: recon.Happened, Via: "slack", ProposedBy: "ana", Effect: "re_9", Reason: "the statement has it"})
	return s
}

func TestAFindingIsReadOnOneScreen(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]FindingStory{"proposed": proposed(t), "orphan": adoptable(t), "settled": settledByTwo(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			if err := Finding(&b, s, at(t, "02:40:00"), berlin(t)); err != nil {
				t.Fatal(err)
			}
			checkPage(t, b.String())
			golden(t, "finding_"+name+".txt", b.Bytes())
		})
	}
}

// Several actions may make such effects, so that the second person says which, too.
func TestAgreeingWithAnAdoptionSaysForWhichAction(t *testing.T) {
	t.Parallel()
	s := adoptable(t)
	s.Proposal = &recon.Proposal{Verb: recon.Adopt, Person: "ana", Reason: "support did it", Two: recon.TwoForAmount, Effect: "re_B1", Action: "refund.create"}
	want := "reconciler findings resolve " + s.ID + " --as adopt --effect re_B1 --action refund.create --reason TEXT"
	if got := agreement(s); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What a finding is not about, or what everybody is refused, is no way to settle it.
func TestAFindingOffersWhatLeadsOn(t *testing.T) {
	t.Parallel()
	unkept := proposed(t)
	unkept.Stories[0].Kept = false
	for kind, want := range map[recon.FindingKind][]string{
		recon.FindUnresolved: {"happened", "did-not-happen"},
		recon.FindMissing:    {"happened", "did-not-happen"},
		recon.FindNeverSent:  {"happened", "did-not-happen"},
		recon.FindOrphan:     {"adopt", "ignore"},
		recon.FindDuplicate:  {"accept"},
		recon.FindMismatch:   {"accept"},
		recon.FindReversed:   {"did-not-happen", "accept"},
		recon.FindConflict:   {"accept"},
		recon.FindFailing:    {"accept"},
		recon.FindBlind:      nil,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := unkept
			s.Kind = kind
			var b bytes.Buffer
			if err := Finding(&b, s, at(t, "02:40:00"), nil); err != nil {
				t.Fatal(err)
			}
			_, ways, _ := strings.Cut(b.String(), "To settle it\n")
			var got []string
			for line := range strings.Lines(ways) {
				if verb := strings.Fields(line)[0]; recon.Verb(verb).Settles() {
					got = append(got, verb)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if strings.Contains(ways, "difference") != (kind == recon.FindMismatch) {
				t.Errorf("it speaks of a difference where there is none, or not where there is one:\n%s", ways)
			}
		})
	}
}

func TestFindingsAreListedWithWhatPeopleDid(t *testing.T) {
	t.Parallel()
	ended := adoptable(t).FindingRow
	ended.State, ended.EndedAt, ended.Ending = recon.FindingEnded, at(t, "02:30:00"), "an operation explains it now"
	list := []FindingRow{proposed(t).FindingRow, adoptable(t).FindingRow, settledByTwo(t).FindingRow, ended}
	var b bytes.Buffer
	if err := Findings(&b, FindingList{Rows: list, Now: at(t, "02:40:00")}); err != nil {
		t.Fatal(err)
	}
	checkPage(t, b.String())
	golden(t, "findings.txt", b.Bytes())
	b.Reset()
	if err := Findings(&b, FindingList{Now: at(t, "02:40:00")}); err != nil || b.String() != "no findings\n" {
		t.Errorf("nothing is listed as %q, %v", b.String(), err)
	}
}

// Others read these names.
func TestTheListOfFindingsHasTheFieldsOfItsContract(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := FindingsJSON(&b, []FindingRow{proposed(t).FindingRow, {}}, at(t, "02:40:00")); err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(b.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "kind", "certainty", "state", "source", "operation_ids", "effect_ids", "observed", "opened_at", "age_seconds", "level", "assignee", "money"} {
		for i, f := range list {
			if _, ok := f[name]; !ok {
				t.Errorf("finding %d has no %q", i, name)
			}
		}
	}
	if d := cmp.Diff(map[string]any{"amount": 4200.0, "currency": "EUR"}, list[0]["money"]); d != "" {
		t.Error(d)
	}
	if got := list[0]["age_seconds"]; got != (26*time.Minute + 28*time.Second).Seconds() {
		t.Errorf("age %v", got)
	}
	for _, name := range []string{"operation_ids", "effect_ids", "observed", "effects"} {
		if d := cmp.Diff([]any{}, list[1][name]); d != "" {
			t.Errorf("an empty %s is not []: %s", name, d)
		}
	}
	b.Reset()
	if err := FindingsJSON(&b, nil, time.Time{}); err != nil || strings.TrimSpace(b.String()) != "[]" {
		t.Errorf("an empty list is %q, %v", b.String(), err)
	}
	b.Reset()
	if err := FindingJSON(&b, adoptable(t), at(t, "02:40:00")); err != nil || !json.Valid(b.Bytes()) || !strings.Contains(b.String(), `"acts": []`) {
		t.Errorf("one finding is %s, %v", b.String(), err)
	}
}
