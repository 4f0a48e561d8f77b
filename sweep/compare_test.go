package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

var april = time.Date(2026, 4, 1, 0, 15, 0, 0, time.UTC)

// op and eff are lines with what every line needs; more is appended.
func op(id, state, more string) string {
	return fmt.Sprintf(`{"id":%q,"source":"stripe","action":"refund.create","target":"order:%s","state":%q,"created_at":"2026-03-10T10:00:00Z","sent_at":"2026-03-10T10:00:00Z"%s}`, id, id, state, more)
}

func eff(id, status, more string) string {
	return fmt.Sprintf(`{"id":%q,"source":"stripe","kind":"refund","status":%q,"created_at":"2026-03-10T10:00:05Z"%s}`, id, status, more)
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func tryCompare(operations, effects string, change ...func(*sweep.CompareOptions)) (sweep.CompareResult, error) {
	o := sweep.CompareOptions{
		Operations: strings.NewReader(operations), Effects: strings.NewReader(effects),
		OperationsName: "ops.jsonl", EffectsName: "effects.jsonl", Now: april,
	}
	for _, c := range change {
		c(&o)
	}
	return sweep.Compare(context.Background(), o)
}

func mustCompare(t *testing.T, operations, effects string, change ...func(*sweep.CompareOptions)) sweep.CompareResult {
	t.Helper()
	r, err := tryCompare(operations, effects, change...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only gives the classes that count above 0.
func only(classes map[rules.Class]int) map[rules.Class]int {
	some := map[rules.Class]int{}
	for k, n := range classes {
		if n > 0 {
			some[k] = n
		}
	}
	return some
}

func wantClasses(t *testing.T, r sweep.CompareResult, operations, effects map[rules.Class]int) {
	t.Helper()
	if diff := cmp.Diff(operations, only(r.Classes.Operations)); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(effects, only(r.Classes.Effects)); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

func wantFindings(t *testing.T, r sweep.CompareResult, want ...string) {
	t.Helper()
	got := []string{}
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s %s %v %v", f.Kind, f.Certainty, f.Operations, f.EffectIDs))
	}
	if len(want) == 0 {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

type classes = map[rules.Class]int

func TestCompareRefusesWithFileAndLine(t *testing.T) {
	t.Parallel()
	good, money := op("op_1", "unknown", ""), `,"amount":4200,"currency":"EUR","reference":"op_1"`
	tests := []struct{ name, operations, effects, want string }{
		{"an unknown field", lines(good, op("op_2", "unknown", `,"colour":"red"`)), "", `ops.jsonl line 2: unknown field "colour"; remove it`},
		{"a fraction", lines(good), lines("", eff("re_1", "completed", `,"amount":42.5,"currency":"EUR"`)), "effects.jsonl line 2: field amount: 42.5 is not a whole number"},
		{"an operation id that stands twice", lines(good, "", op("op_2", "failed", ""), good), "", "ops.jsonl line 4: operation op_1 stands on line 1 already"},
		{"an operation id that stands twice with other content", lines(good, op("op_1", "failed", "")), "", "ops.jsonl line 2: operation op_1 stands on line 1 already"},
		{"two amounts of one effect", lines(good), lines(eff("re_1", "completed", money), eff("re_1", "completed", strings.Replace(money, "4200", "4300", 1))),
			"effects.jsonl line 2: effect re_1 stands on line 1 already, with the same status and another amount"},
		{"two currencies of one effect", lines(good), lines(eff("re_1", "completed", money), eff("re_1", "completed", strings.Replace(money, "EUR", "USD", 1))),
			"effects.jsonl line 2: effect re_1 stands on line 1 already, with the same status and another currency"},
		{"two references of one effect", lines(good), lines(eff("re_0", "completed", ""), eff("re_1", "completed", money), eff("re_1", "completed", strings.Replace(money, "op_1", "op_2", 1))),
			"effects.jsonl line 3: effect re_1 stands on line 2 already, with the same status and another reference"},
		{"two currencies in one group", lines(op("op_1", "succeeded", `,"group":"g-1","amount":100,"currency":"EUR"`), op("op_2", "succeeded", `,"group":"g-1","amount":100,"currency":"USD"`)), "",
			"ops.jsonl line 2: operation op_2 is in USD and its group g-1 in EUR on line 1; a group has one currency"},
		{"a line that never ends", lines(good), `{"id":"` + strings.Repeat("x", 2<<20), "effects.jsonl line 1: it has over 1048576 bytes"},
		{"a file of another kind", lines(good), "id,amount\nre_1,4200\n", "effects.jsonl line 1: the line is not a JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tryCompare(tt.operations, tt.effects)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestCompareSorts(t *testing.T) {
	t.Parallel()
	charge := func(more string) string {
		return strings.Replace(op("op_1", "succeeded", `,"amount":4200,"currency":"EUR"`+more), "refund.create", "charge.create", 1)
	}
	paid := func(id string) string {
		return strings.Replace(eff(id, "completed", `,"reference":"op_1","amount":4200,"currency":"EUR"`), `"refund"`, `"charge"`, 1)
	}
	back := func(id, more string) string {
		return strings.Replace(eff(id, "completed", more), "10:00:05Z", "11:00:00Z", 1)
	}
	ours := `,"reference":"op_1"`
	tests := []struct {
		name                string
		operations, effects string
		wantOps, wantEffs   classes
		findings            []string
	}{
		{"an absent account as the default one", lines(op("op_1", "unknown", `,"account":"default","mode":"live"`)), lines(eff("re_1", "completed", ours)),
			classes{"matched": 1}, classes{"matched": 1}, nil},
		{"lines of one effect as one, by the furthest status", lines(op("op_1", "succeeded", "")),
			lines(eff("re_1", "completed", ours), eff("re_1", "in_flight", ours), eff("re_1", "completed", ours)), classes{"matched": 1}, classes{"matched": 1}, nil},
		{"what only one line of an effect shows", lines(op("op_1", "succeeded", "")), lines(eff("re_1", "in_flight", ours), eff("re_1", "completed", "")),
			classes{"matched": 1}, classes{"matched": 1}, nil},
		{"reversed as further than failed", lines(op("op_1", "unknown", "")), lines(eff("re_1", "reversed", ours), eff("re_1", "failed", ours)),
			classes{"reversed": 1}, classes{"reversed": 1}, []string{"reversed proof [op_1] [re_1]"}},
		{"an old unknown one without effect as unresolved", lines(op("op_1", "unknown", ""), op("op_2", "succeeded", "")), lines(eff("re_2", "completed", `,"reference":"op_2"`)),
			classes{"unresolved": 1, "matched": 1}, classes{"matched": 1}, []string{"unresolved proof [op_1] []"}},
		{"a succeeded one without effect as missing", lines(op("op_1", "succeeded", ""), op("op_2", "succeeded", "")), lines(eff("re_2", "completed", `,"reference":"op_2"`)),
			classes{"missing": 1, "matched": 1}, classes{"matched": 1}, []string{"missing proof [op_1] []"}},
		{"a failed one with an effect in flight as a conflict", lines(op("op_1", "failed", "")), lines(eff("re_1", "in_flight", ours)),
			classes{"conflict": 1}, classes{"conflict": 1}, []string{"conflict proof [op_1] [re_1]"}},
		{"a failed one with two effects as duplicate, and tells both", lines(op("op_1", "failed", "")), lines(eff("re_1", "completed", ours), eff("re_2", "completed", ours)),
			classes{"duplicate": 1}, classes{"matched": 1, "duplicate": 1}, []string{"conflict proof [op_1] [re_1 re_2]", "duplicate proof [op_1] [re_1 re_2]"}},
		{"an effect of another mode as not ours, and the mode as unseen", lines(op("op_1", "failed", "")), lines(eff("re_1", "completed", ours+`,"mode":"test"`)),
			classes{"unseen": 1}, classes{"not_ours": 1}, nil},
		{"an effect that follows from another as explained", lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", ours), eff("re_2", "completed", `,"caused_by":"re_1"`)),
			classes{"matched": 1}, classes{"matched": 1, "explained": 1}, nil},
		{"a charge made twice and refunded once as matched", lines(charge("")), lines(paid("ch_1"), paid("ch_2"), back("re_1", `,"parent":"ch_2","amount":4200,"currency":"EUR"`)),
			classes{"matched": 1}, classes{"matched": 2, "explained": 1}, nil},
		{"a charge made twice and refunded in part as duplicate", lines(charge("")), lines(paid("ch_1"), paid("ch_2"), back("re_1", `,"parent":"ch_2","amount":4100,"currency":"EUR"`)),
			classes{"duplicate": 1}, classes{"matched": 1, "duplicate": 1, "orphan": 1}, []string{"duplicate proof [op_1] [ch_1 ch_2]", "orphan proof [] [re_1]"}},
		{"a single charge that was refunded by hand as matched, and the refund as orphan", lines(charge("")), lines(paid("ch_1"), back("re_1", `,"parent":"ch_1","amount":4200,"currency":"EUR"`)),
			classes{"matched": 1}, classes{"matched": 1, "orphan": 1}, []string{"orphan proof [] [re_1]"}},
		{"an effect that follows from an unknown one as orphan", lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", ours), eff("re_2", "completed", `,"caused_by":"re_9"`)),
			classes{"matched": 1}, classes{"matched": 1, "orphan": 1}, []string{"orphan proof [] [re_2]"}},
		{"a parent whose total differs, and changes no class", lines(op("op_1", "succeeded", "")),
			lines(eff("re_1", "completed", ours+`,"parent":"ch_1","amount":2000,"currency":"EUR","parent_total":3000`)),
			classes{"matched": 1}, classes{"matched": 1}, []string{"mismatch proof [] [re_1]"}},
		{"a failed effect without operation as failed", lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", ours), eff("re_2", "failed", "")),
			classes{"matched": 1}, classes{"matched": 1, "failed": 1}, nil},
		{"a charge that carries our reference as nobody's", lines(op("op_1", "succeeded", "")),
			lines(eff("re_1", "completed", ours), strings.Replace(eff("ch_1", "completed", ours), `"refund"`, `"charge"`, 1)),
			classes{"matched": 1}, classes{"matched": 1, "orphan": 1}, []string{"orphan proof [] [ch_1]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustCompare(t, tt.operations, tt.effects)
			wantClasses(t, r, tt.wantOps, tt.wantEffs)
			wantFindings(t, r, tt.findings...)
		})
	}
}

func TestASourceOfWhichNothingWasReadIsUnseen(t *testing.T) {
	t.Parallel()
	bank := strings.Replace(op("op_2", "succeeded", ""), `"stripe"`, `"bank"`, 1)
	r := mustCompare(t, lines(op("op_1", "succeeded", ""), bank), lines(eff("re_1", "completed", `,"reference":"op_1"`)))
	wantClasses(t, r, classes{"matched": 1, "unseen": 1}, classes{"matched": 1})
	wantFindings(t, r)
	if len(r.Unseen) != 1 || r.Unseen[0].Source != "bank" || r.Unseen[0].Why != "empty" || !r.Unseen[0].From.Equal(r.Window.From) {
		t.Errorf("unseen %+v", r.Unseen)
	}
}

// A file that was not exported and a file of something else look like what did not happen.
func TestWhatTheFilesMayLackIsSaid(t *testing.T) {
	t.Parallel()
	theirs := lines(eff("re_1", "completed", `,"reference":"op_1"`))
	early := func(o *sweep.CompareOptions) { o.Now = time.Date(2026, 3, 10, 10, 0, 0, 0, time.UTC) }
	tests := map[string]struct {
		ours, theirs string
		change       func(*sweep.CompareOptions)
		want         []string
	}{
		"a source without effects is unseen": {ours: lines(op("op_1", "succeeded", "")), theirs: ""},
		"effects of another source": {ours: lines(op("op_1", "succeeded", "")), theirs: strings.ReplaceAll(theirs, `"stripe"`, `"strip"`), want: []string{
			"effects.jsonl holds effects of strip, of which there is no operation: all of them count as not_ours"}},
		"no operations": {ours: "", theirs: theirs, want: []string{
			"ops.jsonl holds no operation, and nothing else says which effects are ours: all of them count as not_ours"}},
		"a now before the files end": {ours: lines(op("op_1", "succeeded", "")), theirs: lines(eff("re_1", "completed", `,"reference":"op_1"`)), change: early, want: []string{
			"the files hold what was made until 2026-03-10 10:00:05 UTC, which is after now (2026-03-10 10:00:00 UTC): export them again, or give a later --now"}},
		"all there": {ours: lines(op("op_1", "succeeded", "")), theirs: lines(eff("re_1", "completed", `,"reference":"op_1"`))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := tt.change
			if change == nil {
				change = func(*sweep.CompareOptions) {}
			}
			if diff := cmp.Diff(tt.want, mustCompare(t, tt.ours, tt.theirs, change).Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Absence of evidence closes nothing: what is not in a file that does not show its place, or
// its kind, is unseen and not missing.
func TestWhatAFileDoesNotShowIsUnseen(t *testing.T) {
	t.Parallel()
	ours := func(id, action, more string) string {
		return strings.Replace(op(id, "succeeded", more), "refund.create", action, 1)
	}
	theirs := func(id, kind, more string) string {
		return strings.Replace(eff(id, "completed", more), `"kind":"refund"`, fmt.Sprintf(`"kind":%q`, kind), 1)
	}
	tests := map[string]struct {
		ours, theirs string
		operations   classes
		why          []string
	}{
		"an account without lines": {
			lines(ours("op_1", "refund.create", `,"account":"acct_1"`), ours("op_2", "refund.create", `,"account":"acct_2"`)), lines(theirs("re_1", "refund", `,"reference":"op_1","account":"acct_1"`)),
			classes{"matched": 1, "unseen": 1}, []string{"account acct_2 in live mode is empty"}},
		"a mode without lines": {
			lines(ours("op_1", "refund.create", ""), ours("op_2", "refund.create", `,"mode":"test"`)), lines(theirs("re_1", "refund", `,"reference":"op_1"`)),
			classes{"matched": 1, "unseen": 1}, []string{"account default in test mode is empty"}},
		"a payout in a file of refunds": {
			lines(ours("op_1", "refund.create", ""), ours("op_2", "payout.create", "")), lines(theirs("re_1", "refund", `,"reference":"op_1"`)),
			classes{"matched": 1, "unseen": 1}, []string{"no effect says what payout.create makes; name it in a configuration (`effect`)"}},
		"a kind that only another account shows": {
			lines(ours("op_1", "refund.create", `,"account":"acct_1"`), ours("op_2", "payout.create", `,"account":"acct_1"`)),
			lines(theirs("re_1", "refund", `,"reference":"op_1","account":"acct_1"`), theirs("po_1", "payout", `,"account":"acct_2"`)),
			classes{"matched": 1, "unseen": 1}, []string{"there is no payout of account acct_1 in live mode in the file, so it may not show them"}},
		"an action of another name that some effect names is known": {
			lines(ours("op_1", "money.send", ""), ours("op_2", "money.send", "")), lines(theirs("tr_1", "transfer", `,"reference":"op_1"`)),
			classes{"matched": 1, "missing": 1}, nil},
		"and so it is by key": {
			lines(ours("op_1", "money.send", `,"key":"k1"`), ours("op_2", "money.send", "")), lines(theirs("tr_1", "transfer", `,"key":"k1"`)),
			classes{"matched": 1, "missing": 1}, nil},
		"and by the effect's id": {
			lines(ours("op_1", "money.send", `,"effect_id":"tr_1"`), ours("op_2", "money.send", "")), lines(theirs("tr_1", "transfer", "")),
			classes{"matched": 1, "missing": 1}, nil},
		"a key that two bear names neither": {
			lines(ours("op_1", "money.send", `,"key":"k1"`), ours("op_2", "letter.send", `,"key":"k1"`)), lines(theirs("tr_1", "transfer", "")),
			classes{"unseen": 2}, []string{"no effect says what letter.send makes; name it in a configuration (`effect`)", "no effect says what money.send makes; name it in a configuration (`effect`)"}},
		"an action that is named for what is there": {
			lines(ours("op_1", "refund.create", "")), lines(theirs("re_1", "refund", "")),
			classes{"missing": 1}, nil},
	}
	for name, tt := range tests {
		for way, change := range map[string]func(*sweep.CompareOptions){"files": func(*sweep.CompareOptions) {}, "pipes": func(o *sweep.CompareOptions) { o.Effects = io.MultiReader(o.Effects) }} {
			t.Run(name+", by "+way, func(t *testing.T) {
				t.Parallel()
				r := mustCompare(t, tt.ours, tt.theirs, change)
				if diff := cmp.Diff(map[rules.Class]int(tt.operations), only(r.Classes.Operations)); diff != "" {
					t.Errorf("classes (-want +got):\n%s", diff)
				}
				var why []string
				for _, u := range r.Unseen {
					why = append(why, u.Why)
				}
				if diff := cmp.Diff(tt.why, why); diff != "" {
					t.Errorf("unseen (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAConfiguredKindOfWhichThereIsNoneIsUnseen(t *testing.T) {
	t.Parallel()
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect = "refund.create", "stripe", "payout"
	r := mustCompare(t, lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", "")), func(o *sweep.CompareOptions) {
		o.Policies = map[string]recon.Policy{p.Action: p}
	})
	if r.Classes.Operations[rules.ClassUnseen] != 1 || len(r.Unseen) != 1 || r.Unseen[0].Why != "there is no payout in the file, so it may not show them" {
		t.Errorf("%v, %+v", only(r.Classes.Operations), r.Unseen)
	}
}

// B23: rows that are alike stay two without an id, and are one told twice with one. B78: what
// a later export says of the same row stands, in whichever order both are read.
func TestRowsOfOneFileThatAreAlike(t *testing.T) {
	t.Parallel()
	table := func(columns files.Columns) func(o *sweep.CompareOptions) {
		return func(o *sweep.CompareOptions) {
			f, err := files.FormatOf("", files.Settings{
				Format: "bank", Kind: "refund", Unit: "minor", Dates: "rfc3339", Currency: "EUR", Columns: columns,
				Statuses: map[string]string{"Completed": "completed", "Canceled": "failed"},
			})
			if err != nil {
				t.Error(err)
			}
			o.EffectsFormat = &f
		}
	}
	one := lines(op("op_1", "succeeded", `,"effect_id":"T1","amount":5000,"currency":"EUR"`))
	named := files.Columns{ID: "id", CreatedAt: "at", Amount: "amount", Status: "status"}
	const head = "id,at,amount,status\n"
	completed, canceled := "T1,2026-01-05T09:00:00Z,5000,Completed\n", "T1,2026-01-05T09:00:00Z,5000,Canceled\n"
	for name, tt := range map[string]struct {
		effects  string
		columns  files.Columns
		repeated int
		ours     classes
		kinds    []recon.FindingKind
	}{
		"B23 without an id":              {"at,amount\n2026-05-04T00:00:00Z,1340\n2026-05-04T00:00:00Z,1340\n", files.Columns{CreatedAt: "at", Amount: "amount"}, 0, classes{"missing": 1}, []recon.FindingKind{"missing", "orphan", "orphan"}},
		"B23 with one id":                {head + completed + completed, named, 1, classes{"matched": 1}, nil},
		"B78 the second export":          {head + canceled, named, 0, classes{"reversed": 1}, []recon.FindingKind{"reversed"}},
		"B78 both, the first one first":  {head + completed + canceled, named, 1, classes{"reversed": 1}, []recon.FindingKind{"reversed"}},
		"B78 both, the second one first": {head + canceled + completed, named, 1, classes{"reversed": 1}, []recon.FindingKind{"reversed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustCompare(t, one, tt.effects, table(tt.columns), func(o *sweep.CompareOptions) { o.Now = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC) })
			var kinds []recon.FindingKind
			for _, f := range r.Findings {
				kinds = append(kinds, f.Kind)
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(tt.kinds, kinds); diff != "" || r.Repeated != tt.repeated {
				t.Errorf("%d repeated, findings (-want +got):\n%s", r.Repeated, diff)
			}
			if diff := cmp.Diff(tt.ours, only(r.Classes.Operations)); diff != "" {
				t.Errorf("classes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestYoungOnesAreNotYet(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "unknown", ""), op("op_2", "pending", ""), op("op_3", "in_progress", "")), lines(eff("re_1", "completed", "")),
		func(o *sweep.CompareOptions) { o.Now = time.Date(2026, 3, 10, 10, 10, 0, 0, time.UTC) })
	wantClasses(t, r, classes{"not_yet": 3}, classes{"not_yet": 1})
	wantFindings(t, r)
}

func TestAWindowIsHalfOpenAndPairsReachOverIt(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 10, 10, 0, 5, 0, time.UTC)
	r := mustCompare(t, lines(op("op_1", "succeeded", ""), op("op_2", "succeeded", "")),
		lines(eff("re_1", "completed", `,"reference":"op_1"`), eff("re_2", "completed", `,"reference":"op_1"`)),
		func(o *sweep.CompareOptions) { o.Window = recon.Window{From: from} })
	wantClasses(t, r, classes{}, classes{"matched": 1, "duplicate": 1})
	wantFindings(t, r, "duplicate proof [op_1] [re_1 re_2]") // its effects count; op_2's missing does not
	r = mustCompare(t, lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", `,"reference":"op_1"`)),
		func(o *sweep.CompareOptions) { o.Window = recon.Window{To: from} })
	wantClasses(t, r, classes{"matched": 1}, classes{})
}

func TestB02_ARefundByHandIsAnOrphanWithWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "succeeded", "")),
		lines(eff("re_1", "completed", `,"reference":"op_1"`), eff("re_B1", "completed", `,"parent":"ch_B","amount":1500,"currency":"eur","created_by":"ana"`)))
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "orphan": 1})
	wantFindings(t, r, "orphan proof [] [re_B1]")
	want := "A refund of 15.00 EUR under ch_B (completed) was made at 2026-03-10 10:00:05 UTC by ana and no operation explains it."
	if r.Findings[0].Reason != want {
		t.Errorf("reason %q\nwant   %q", r.Findings[0].Reason, want)
	}
}

func TestB69_OnlyOuterSpaceOfAReferenceIsForgiven(t *testing.T) {
	t.Parallel()
	for reference, exact := range map[string]bool{
		"op_1510": true, " op_1510 ": true, "OP_1510": false, "op_ 1510": false, "Ref. op_1510": false, `\"OP-1510\"`: false, "op_1510\u200b": false,
	} {
		r := mustCompare(t, lines(op("op_1510", "unknown", "")), lines(eff("re_1", "completed", `,"reference":"`+reference+`","metadata":null`)))
		if exact {
			wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1})
			continue
		}
		wantClasses(t, r, classes{"unresolved": 1}, classes{"orphan": 1})
		if f := r.Findings[0]; !strings.Contains(f.Reason, "it could be that of op_1510 (by a reference that looks like ours)") {
			t.Errorf("%s: %s", reference, f.Reason)
		}
	}
}

func TestB102_ARefundIsFoundByItsOwnIdAndNotByThatOfItsPayment(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "succeeded", `,"effect_id":"R1","parent":"P2","amount":900,"currency":"EUR"`)),
		lines(eff("R1", "completed", `,"parent":"P2","amount":900,"currency":"EUR"`), // as the notification tells it
			eff("R1", "completed", `,"parent":"P2","amount":900,"currency":"EUR"`), // and the settlement
			strings.Replace(eff("P2", "completed", `,"amount":5000,"currency":"EUR"`), `"refund"`, `"payment"`, 1)))
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "orphan": 1})
	if r.Repeated != 1 {
		t.Errorf("repeated %d", r.Repeated)
	}
}

func TestB108_APaymentWithRefundsCountsOnce(t *testing.T) {
	t.Parallel()
	charge := strings.Replace(op("op_1", "succeeded", `,"amount":5200,"currency":"EUR"`), "refund.create", "charge.create", 1)
	made := strings.Replace(eff("ch_1", "completed", `,"reference":"op_1","amount":5200,"currency":"EUR"`), `"refund"`, `"charge"`, 1)
	part := func(n string) string { return `,"parent":"ch_1","amount":450,"currency":"EUR"` + n }
	r := mustCompare(t, lines(charge, op("op_2", "succeeded", part("")), op("op_3", "succeeded", part(""))),
		lines(made, eff("re_2", "completed", part(`,"reference":"op_2","parent_total":900`)), eff("re_3", "completed", part(`,"reference":"op_3","parent_total":900`))))
	wantClasses(t, r, classes{"matched": 3}, classes{"matched": 3})
	wantFindings(t, r)
}

func TestB60_WhatACaptureReleasesOfAHoldIsNoOrphan(t *testing.T) {
	t.Parallel()
	capture := strings.Replace(op("op_1", "succeeded", `,"amount":1500,"currency":"EUR"`), "refund.create", "charge.capture", 1)
	made := strings.Replace(eff("ch_Z", "completed", `,"reference":"op_1","amount":1500,"currency":"EUR"`), `"refund"`, `"charge"`, 1)
	rest := `,"parent":"ch_Z","amount":500,"currency":"EUR"`
	r := mustCompare(t, lines(capture), lines(made, eff("re_Z1", "completed", rest)))
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "explained": 1})
	wantFindings(t, r)
	for name, other := range map[string]string{
		"later": strings.Replace(eff("re_Z1", "completed", rest), "10:00:05Z", "10:00:09Z", 1), "by somebody": eff("re_Z1", "completed", rest+`,"created_by":"ana"`),
		"of nothing that we captured": eff("re_Z1", "completed", strings.Replace(rest, "ch_Z", "ch_Y", 1)), "by its own mark": eff("re_Z1", "completed", rest+`,"reference":"op_9"`),
	} {
		if r := mustCompare(t, lines(capture), lines(made, other)); r.Classes.Effects["orphan"] != 1 {
			t.Errorf("%s: %v", name, only(r.Classes.Effects))
		}
	}
}

func TestB01_TheLostRefundAndItsRetryAreBothTold(t *testing.T) {
	t.Parallel()
	charge := `,"parent":"ch_A","amount":4200,"currency":"EUR"`
	first := strings.Replace(op("op_1001", "failed", charge+`,"key":"k-1","error_code":"timeout"`), "order:op_1001", "order:7", 1)
	second := strings.NewReplacer("order:op_1002", "order:7", `"2026-03-10T10:00:00Z"`, `"2026-03-10T10:01:10Z"`).Replace(op("op_1002", "succeeded", charge+`,"key":"k-2"`))
	r := mustCompare(t, lines(first, second), lines(eff("re_A1", "completed", charge+`,"reference":"op_1001"`), eff("re_A2", "completed", charge+`,"reference":"op_1002"`)))
	wantClasses(t, r, classes{"conflict": 1, "matched": 1}, classes{"conflict": 1, "matched": 1})
	wantFindings(t, r, "conflict proof [op_1001] [re_A1]", "duplicate suspected [op_1001 op_1002] [re_A1 re_A2]")
}

func TestB39_TheCandidatesOfAnUnmarkedEffectAreListed(t *testing.T) {
	t.Parallel()
	intent := `,"parent":"pi_1","amount":1900,"currency":"EUR"`
	r := mustCompare(t, lines(op("op_1", "unknown", intent), op("op_2", "unknown", intent), op("op_3", "unknown", intent)), lines(eff("re_1", "completed", intent)))
	wantClasses(t, r, classes{"unresolved": 3}, classes{"orphan": 1})
	if f := r.Findings[0]; f.Kind != recon.FindOrphan || !strings.Contains(f.Reason,
		"it could be that of op_1 (by parent and amount only), op_2 (by parent and amount only), op_3 (by parent and amount only)") {
		t.Errorf("finding %+v", f)
	}
	if f := r.Findings[1]; !strings.Contains(f.Reason, "it could be re_1 (completed, by parent and amount only)") {
		t.Errorf("finding %+v", f)
	}
}

func TestBothSidesOfAMismatchAreShown(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "succeeded", `,"amount":6400,"currency":"JPY"`)), lines(eff("re_1", "completed", `,"reference":"op_1","amount":64,"currency":"JPY"`)))
	want := []recon.Difference{{Field: "amount", Ours: "6,400 JPY", Theirs: "64 JPY"}}
	if diff := cmp.Diff(want, r.Findings[0].Observed); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func TestPoliciesOfAConfigurationAreUsed(t *testing.T) {
	t.Parallel()
	policy := recon.DefaultPolicy()
	policy.Source, policy.Effect, policy.System, policy.Tolerance = "stripe", "refund", "stripe-inc", 5
	policy.Accounts = []recon.Account{{Account: "acct_1", Mode: "test"}}
	with := func(o *sweep.CompareOptions) { o.Policies = map[string]recon.Policy{"refund.create": policy} }
	money := func(n int) string { return fmt.Sprintf(`,"amount":%d,"currency":"KWD"`, n) }
	r := mustCompare(t, lines(op("op_1", "succeeded", money(5125))),
		lines(eff("re_1", "completed", `,"reference":"op_1","account":"acct_1","mode":"test"`+money(5120)), eff("re_2", "completed", `,"account":"acct_1","mode":"live"`)), with)
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "not_ours": 1})

	policy.Orphans = "marked"
	r = mustCompare(t, lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", `,"reference":"op_1","account":"acct_1","mode":"test"`),
		eff("re_2", "completed", `,"account":"acct_1","mode":"test"`), eff("re_3", "completed", `,"reference":"op_3","account":"acct_1","mode":"test"`)), with)
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "not_ours": 1, "orphan": 1})

	policy.Accounts = append(policy.Accounts, recon.Account{Account: "acct_2", Mode: "live"})
	r = mustCompare(t, lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", `,"account":"acct_1"`)), with)
	wantClasses(t, r, classes{"unseen": 1}, classes{"not_ours": 1}) // which account op_1 is of is not known
}

func TestCompareDocumentHasTheShapeOfTheContract(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, "", "")
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"window":{"from":"2026-04-01T00:15:00Z","to":"2026-04-01T00:15:01Z","zone":"UTC"},"operations":0,"effects":0,"repeated":0,` +
		`"classes":{"operations":{"conflict":0,"duplicate":0,"failed":0,"in_flight":0,"matched":0,"mismatch":0,"missing":0,"never_sent":0,"not_yet":0,"reversed":0,"unresolved":0,"unseen":0},` +
		`"effects":{"conflict":0,"duplicate":0,"explained":0,"failed":0,"in_flight":0,"matched":0,"mismatch":0,"not_ours":0,"not_yet":0,"orphan":0,"reversed":0}},` +
		`"findings":[],"unseen":[],"happened":[],"duration_ms":0}`
	if string(got) != want {
		t.Errorf("document\n%s\nwant\n%s", got, want)
	}
	r = mustCompare(t, lines(op("op_1", "succeeded", ""), op("op_2", "succeeded", "")), lines(eff("re_1", "completed", `,"reference":"op_1"`), eff("re_2", "completed", "")))
	got, err = json.Marshal(r.Findings)
	if err != nil {
		t.Fatal(err)
	}
	want = `[{"kind":"missing","certainty":"proof","operation_ids":["op_2"],"effect_ids":[],"effects":[],"observed":[],"reason":"The refund for order:op_2 is recorded as succeeded, and a complete look finds no effect."},` +
		`{"kind":"orphan","certainty":"proof","operation_ids":[],"effect_ids":["re_2"],"effects":[{"source":"stripe","account":"default","mode":"live","kind":"refund","id":"re_2"}],` +
		`"observed":[{"field":"status","ours":"","theirs":"completed"}],"reason":"A refund (completed) was made at 2026-03-10 10:00:05 UTC and no operation explains it."}]`
	if string(got) != want {
		t.Errorf("findings\n%s\nwant\n%s", got, want)
	}
}

func TestAByteOrderMarkAndWindowsLineEndsAreNoPartOfALine(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, "\xef\xbb\xbf"+op("op_1", "succeeded", "")+"\r\n\r\n", eff("re_1", "completed", `,"reference":"op_1"`)+"\r\n"+eff("re_2", "completed", `,"reference":"op_1"`))
	wantClasses(t, r, classes{"duplicate": 1}, classes{"matched": 1, "duplicate": 1})
}

func TestCompareDoesNotDependOnTheOrderOfLines(t *testing.T) {
	t.Parallel()
	shuffled := func(name string, seed uint64) string {
		b, err := os.ReadFile("testdata/northwind/" + name)
		if err != nil {
			t.Fatal(err)
		}
		l := strings.Split(strings.TrimSpace(string(b)), "\n")
		if seed > 0 {
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		}
		return lines(l...)
	}
	want := mustCompare(t, shuffled("operations.jsonl", 0), shuffled("effects.jsonl", 0))
	for seed := uint64(1); seed <= 3; seed++ {
		got := mustCompare(t, shuffled("operations.jsonl", seed), shuffled("effects.jsonl", seed+10))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: another order, another result:\n%s", seed, diff)
		}
	}
}

func TestAWindowBeyondTheFilesIsEmptyAndNeverTurnedRound(t *testing.T) {
	t.Parallel()
	operations, effects := lines(op("op_1", "succeeded", "")), lines(eff("re_1", "completed", ""))
	for _, w := range []recon.Window{{From: april}, {To: april.AddDate(-1, 0, 0)}} {
		r := mustCompare(t, operations, effects, func(o *sweep.CompareOptions) { o.Window = w })
		if r.Operations+r.Effects != 0 || !r.Window.From.Equal(r.Window.To) || !w.From.IsZero() && !r.Window.From.Equal(w.From) || !w.To.IsZero() && !r.Window.To.Equal(w.To) {
			t.Errorf("window %+v gives %+v with %d operations and %d effects", w, r.Window, r.Operations, r.Effects)
		}
	}
}

func TestLinesOfOneEffectSayTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	all := func(l []string, take func([]string)) {
		var walk func(int)
		walk = func(n int) {
			if n == len(l) {
				take(l)
			}
			for i := n; i < len(l); i++ {
				l[n], l[i] = l[i], l[n]
				walk(n + 1)
				l[n], l[i] = l[i], l[n]
			}
		}
		walk(0)
	}
	e := func(status, more string) string { return eff("re_1", status, `,"reference":"op_1"`+more) }
	refund := op("op_1", "succeeded", `,"amount":200,"currency":"EUR","parent":"ch_1"`)
	t.Run("a contradiction under a further status", func(t *testing.T) {
		t.Parallel()
		all([]string{e("in_flight", `,"amount":100,"currency":"EUR"`), e("completed", `,"amount":200,"currency":"EUR"`), e("in_flight", `,"amount":300,"currency":"EUR"`)}, func(l []string) {
			if _, err := tryCompare(refund+"\n", lines(l...)); err == nil || !strings.Contains(err.Error(), "another amount") {
				t.Errorf("%v: error %v", l, err)
			}
		})
	})
	t.Run("an amount that only another status shows contradicts nobody", func(t *testing.T) {
		t.Parallel()
		all([]string{e("completed", ""), e("in_flight", `,"amount":100,"currency":"EUR"`), e("completed", `,"amount":200,"currency":"EUR"`)}, func(l []string) {
			wantClasses(t, mustCompare(t, refund+"\n", lines(l...)), classes{"matched": 1}, classes{"matched": 1})
		})
	})
	t.Run("other fields that differ", func(t *testing.T) {
		t.Parallel()
		all([]string{e("completed", `,"parent":"ch_1"`), e("completed", `,"parent":"ch_2","updated_at":"2026-03-11T00:00:00Z"`)}, func(l []string) {
			wantClasses(t, mustCompare(t, refund+"\n", lines(l...)), classes{"mismatch": 1}, classes{"mismatch": 1})
		})
	})
}

func TestCompareStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := sweep.Compare(ctx, sweep.CompareOptions{Operations: strings.NewReader(lines(op("op_1", "failed", ""))), Effects: strings.NewReader(""), Now: april})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
