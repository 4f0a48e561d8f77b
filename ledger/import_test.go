package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// operationLine is a good line with changes, given as JSON members.
func operationLine(id, more string) string {
	return fmt.Sprintf(`{"id":%q,"source":"stripe-main","action":"refund.create","target":"order:1","created_at":"2026-11-02T09:00:00Z",%s}`+"\n", id, more)
}

func (w *world) importing(file string) ledger.ImportResult {
	w.Helper()
	r, err := w.led.Import(w.Context(), strings.NewReader(file), t0)
	if err != nil {
		w.Fatal(err)
	}
	if r.Rows != r.Imported+r.Repeated+r.SetAside+r.Refused {
		w.Errorf("%d rows are not the sum of %+v", r.Rows, r)
	}
	return r
}

func TestImportTakesEveryStateAndPlansItsLook(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	var file strings.Builder
	for _, s := range recon.States {
		file.WriteString(operationLine(string(s), fmt.Sprintf(`"state":%q,"sent_at":"2026-11-02T09:00:01+00:00"`, s)))
	}
	file.WriteString(operationLine("fresh", `"state":"pending","key":"k"`))
	file.WriteString(operationLine("lost", `"state":"unknown","key":"k2"`))
	file.WriteString(operationLine("old", `"state":"succeeded","closed_at":"2026-10-30T00:00:00Z"`))
	file.WriteString(operationLine("ancient", `"state":"failed","closed_at":"2020-01-01T00:00:00Z"`))
	diff(t, "counts", ledger.ImportResult{Rows: 10, Imported: 10, Encoding: "utf-8", Faults: []ledger.ImportFault{}}, w.importing(file.String()))
	type plan struct {
		closed bool
		next   string
		doubt  bool
	}
	sent := time.Date(2026, 11, 2, 9, 0, 1, 0, time.UTC)
	want := map[string]plan{
		"pending": {false, "due", true}, "in_progress": {false, "due", true}, "unknown": {false, "due", true}, "manual_review": {false, "due", true},
		"fresh": {false, "due", false}, "lost": {false, "due", true}, "succeeded": {true, "day 1", false}, "failed": {true, "day 1", false},
		"old": {true, "day 7", false}, "ancient": {true, "", false},
	}
	got := map[string]plan{}
	for _, o := range w.operations() {
		id := string(o.ID)
		next := one[*time.Time](w, `SELECT next_check FROM reconciler.checks WHERE operation_id = $1`, id)
		p := plan{closed: one[bool](w, `SELECT closed FROM reconciler.checks WHERE operation_id = $1`, id), doubt: o.InDoubt}
		from := o.CreatedAt
		if !o.ClosedAt.IsZero() {
			from = o.ClosedAt
		}
		switch {
		case next == nil:
		case p.closed:
			for _, day := range []int{1, 7, 30, 90} {
				if d := next.Sub(from).Hours() / 24; d >= 0.8*float64(day) && d <= 1.2*float64(day) {
					p.next = fmt.Sprintf("day %d", day)
				}
			}
		case next.After(sent.Add(time.Hour)):
			p.next = "late" // for a run that is told the time of that day
		default:
			p.next = "due"
		}
		got[id] = p
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plan{})); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
	o := w.story("lost").Operation
	if o.KeyExpiresAt.IsZero() || o.UnknownSince.IsZero() || len(o.Marks) != 0 || o.Account != "acct_1" || o.Mode != "live" {
		t.Errorf("imported as %+v", o)
	}
	if o := w.story("unknown").Operation; !o.UnknownSince.Equal(sent) || !o.LeaseUntil.Equal(sent.Add(time.Minute)) {
		t.Errorf("unknown since %v, lease until %v", o.UnknownSince, o.LeaseUntil)
	}
	w.verifyChains()
}

func (w *world) operations() []recon.Operation {
	w.Helper()
	ops, err := w.led.Operations(w.Context(), ledger.OperationFilter{Limit: 10_000})
	if err != nil {
		w.Fatal(err)
	}
	return ops
}

func TestAGroupIsImportedInOneCurrency(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	in := func(id, group, currency string) string {
		return operationLine(id, fmt.Sprintf(`"state":"unknown","group":%q,"amount":4200,"currency":%q`, group, currency))
	}
	got := w.importing(in("a", "batch", "EUR") + in("b", "other", "USD") + in("c", "batch", "USD") + in("d", "batch", "EUR"))
	diff(t, "a group in two currencies", ledger.ImportResult{Rows: 4, Imported: 3, Refused: 1, Encoding: "utf-8", Faults: []ledger.ImportFault{{
		Line: 3, Reason: "operation c is in USD and its group batch in EUR on line 1; a group has one currency, so correct it or take the operation out of the group",
	}}}, got)
}

func TestImportKnowsALineAgain(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	line := operationLine("op", `"state":"unknown","key":"k","amount":4200,"currency":"EUR"`)
	w.importing(line)
	// What the ledger concluded since does not make the line another one.
	w.exec(`UPDATE reconciler.operations SET state = 'succeeded', effect_id = 're_1'`)
	written := strings.Replace(line, `"key":"k"`, ` "key" : "\u006b" `, 1) // the same, written otherwise
	diff(t, "again", ledger.ImportResult{Rows: 2, Repeated: 2, Encoding: "utf-8", Faults: []ledger.ImportFault{}}, w.importing(line+written))
	got := w.importing(operationLine("op", `"state":"unknown","key":"k","amount":4201,"currency":"EUR"`) +
		operationLine("op-2", `"state":"unknown","key":"k"`) +
		operationLine("new", `"state":"unknown"`) + operationLine("new", `"state":"failed"`) + operationLine("new", `"state":"unknown"`))
	diff(t, "others", ledger.ImportResult{Rows: 5, Imported: 1, Repeated: 1, Refused: 3, Encoding: "utf-8", Faults: []ledger.ImportFault{
		{Line: 1, Reason: `operation "op" is in the ledger with other content`},
		{Line: 2, Reason: `its key belongs to operation "op"`},
		{Line: 4, Reason: `operation "new" is in the ledger with other content`},
	}}, got)
	if o := w.story("op").Operation; o.State != recon.Succeeded || o.Money.Minor != 4200 {
		t.Errorf("a refused line changed the operation: %+v", o)
	}
	// An operation that was opened here is not one that was imported.
	if _, err := w.led.OpenOperation(t.Context(), intent("opened")); err != nil {
		t.Fatal(err)
	}
	if got := w.importing(operationLine("opened", `"state":"pending"`)); got.Refused != 1 {
		t.Errorf("over an opened operation: %+v, want refused", got)
	}
}

func TestImportRefusesALineAloneWithItsReason(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	file := operationLine("good", `"state":"unknown"`) + "\n" + // line 2 is blank
		`{"id":"x"}` + "\n" +
		strings.Replace(operationLine("a", `"state":"unknown"`), "refund.create", "refund.crate", 1) +
		strings.Replace(operationLine("b", `"state":"unknown"`), "stripe-main", "stripe-shops", 1) +
		operationLine("c", `"state":"done"`) +
		operationLine("d", `"state":"unknown","amount":10.5,"currency":"EUR"`) +
		operationLine("e", `"state":"unknown","target2":"x"`) +
		operationLine("f", `"state":"unknown","metadata":{"n":1e999999}`) + // JSON, but no number of PostgreSQL
		operationLine("last", `"state":"unknown"`)
	got := w.importing(file)
	if got.Imported != 2 || got.Refused != 7 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		line int
		says string
	}{
		{3, "source"}, {4, `action "refund.crate" has no policy`}, {5, `belongs to source "stripe-main", not "stripe-shops"`}, {6, "state"},
		{7, "amount"}, {8, "target2"}, {9, "refuses the data"},
	} {
		if f := got.Faults[i]; f.Line != want.line || !strings.Contains(f.Reason, want.says) {
			t.Errorf("fault %d is %+v, want line %d and %q", i, f, want.line, want.says)
		}
	}
}

func TestAFaultOfTheFileStoresNothing(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	good := operationLine("good", `"state":"unknown"`)
	for name, file := range map[string]string{
		"it ends inside a line": good + good[:40],
		"a line beyond 1 MiB":   good + strings.Repeat("x", 1<<20) + "\n",
	} {
		_, err := w.led.Import(t.Context(), strings.NewReader(file), t0)
		var usage *ledger.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "nothing was imported") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations`); n != 0 {
		t.Errorf("%d operations of a bad file were stored", n)
	}
	if got := w.importing("\ufeff" + good[:len(good)-1]); got.Imported != 1 {
		t.Errorf("with a byte order mark and without a last line end: %+v", got)
	}
}

func TestImportsOfNothingAndOfManyChunks(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	diff(t, "nothing", ledger.ImportResult{Encoding: "utf-8", Faults: []ledger.ImportFault{}}, w.importing("\n\n"))
	var file strings.Builder
	const n = 2500
	for i := range n {
		file.WriteString(operationLine(fmt.Sprintf("op-%d", i), fmt.Sprintf(`"state":"unknown","key":"k-%d"`, i)))
	}
	before := w.calls.n.Load()
	if got := w.importing(file.String()); got.Imported != n {
		t.Errorf("%+v", got)
	}
	if statements := w.calls.n.Load() - before; statements > 20 {
		t.Errorf("%d statements for %d lines", statements, n)
	}
	if got := w.importing(file.String()); got.Repeated != n {
		t.Errorf("again: %+v", got)
	}
	w.verifyChains()
}

// FuzzImport holds that any file is counted line by line, and that the same file again
// says nothing new.
func FuzzImport(f *testing.F) {
	led, err := ledger.Open(f.Context(), ledger.Options{URL: pgtest.URL(f), MaxConns: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(led.Close)
	if _, err := led.ApplyPolicies(f.Context(), []recon.Policy{repeatable()}, t0); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file string) {
		first, err := led.Import(t.Context(), strings.NewReader(file), t0)
		var usage *ledger.UsageError
		if err != nil && !errors.As(err, &usage) {
			t.Fatal(err)
		}
		again, secondErr := led.Import(t.Context(), strings.NewReader(file), t0)
		if (err == nil) != (secondErr == nil) {
			t.Fatalf("first %v, then %v", err, secondErr)
		}
		for _, r := range []ledger.ImportResult{first, again} {
			if r.Rows != r.Imported+r.Repeated+r.SetAside+r.Refused {
				t.Fatalf("%d rows are not the sum of %+v", r.Rows, r)
			}
		}
		if again.Imported != 0 || again.Repeated != first.Imported+first.Repeated || again.Refused != first.Refused {
			t.Fatalf("first %+v, then %+v", first, again)
		}
	})
}
