package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// effectFile gives rows as a reader of files does.
type effectFile struct {
	lines []ledger.EffectLine
	at    int
	fault error // behind the last row
	stop  func()
	seen  map[recon.EffectIdentity]bool
}

func (f *effectFile) Next(line *ledger.EffectLine) bool {
	if f.at == len(f.lines) {
		return false
	}
	if f.at == len(f.lines)/2 && f.stop != nil {
		f.stop()
	}
	*line = f.lines[f.at]
	f.at++
	if line.Line = f.at + 1; line.Refused == "" && !line.SetAside {
		if f.seen == nil {
			f.seen = map[recon.EffectIdentity]bool{}
		}
		line.Again = f.seen[line.Effect.Identity()]
		f.seen[line.Effect.Identity()] = true
	}
	return true
}

func (f *effectFile) Err() error { return f.fault }

func rowsOf(effects ...recon.Effect) []ledger.EffectLine {
	lines := make([]ledger.EffectLine, len(effects))
	for i, e := range effects {
		lines[i].Effect = e
	}
	return lines
}

// told is a refund as a file tells it, with changes.
func toldEffect(id string, status recon.EffectStatus, change ...func(*recon.Effect)) recon.Effect {
	e := recon.Effect{ID: id, Source: source, System: "stripe", Kind: "refund", Status: status, Money: recon.Money{Minor: 1000, Currency: "EUR"},
		Account: "acct_1", Mode: "live", CreatedAt: t0}
	for _, c := range change {
		c(&e)
	}
	return e
}

func (w *world) importEffects(f *effectFile, readable bool) (ledger.ImportResult, error) {
	w.Helper()
	r, err := w.led.ImportEffects(w.Context(), ledger.EffectImport{
		Source: source, System: "stripe", File: f, Name: "export.csv", Readable: readable, Now: t0.Add(time.Hour),
	})
	if r.Rows != r.Imported+r.Repeated+r.SetAside+r.Refused {
		w.Errorf("%d rows are not the sum of %+v", r.Rows, r)
	}
	return r, err
}

func (w *world) bring(effects ...recon.Effect) ledger.ImportResult {
	w.Helper()
	r, err := w.importEffects(&effectFile{lines: rowsOf(effects...)}, false)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func counts(r ledger.ImportResult) string {
	return fmt.Sprintf("%d = %d + %d + %d + %d", r.Rows, r.Imported, r.Repeated, r.SetAside, r.Refused)
}

// stored is every effect as one text, without what tells when it was brought in.
func (w *world) shelf() []string {
	w.Helper()
	rows, err := w.db.Query(w.Context(), `SELECT (to_jsonb(e) - 'look_id' - 'seen_at' - 'first_seen_at')::text FROM reconciler.effects e ORDER BY account, mode, id`)
	if err != nil {
		w.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func TestAFileOfEffectsIsBroughtInOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fee := int64(30)
	full := toldEffect("re_1", recon.Completed, func(e *recon.Effect) {
		e.Parent, e.OtherParents, e.Target, e.Reference, e.Key = "ch_1", []string{`pi_"1\`, "x,y"}, "order\t1\\", "op_1", "k\n1"
		e.Fee, e.Settlement, e.UpdatedAt = &fee, recon.Money{Minor: 900, Currency: "USD"}, t0.Add(time.Minute)
		e.NaturalReference, e.CreatedBy, e.FailureReason, e.CausedBy = "inv", "ana", "none", "re_0"
		e.Metadata = json.RawMessage(`{"a": "x\ty"}`)
	})
	r := w.bring(full, toldEffect("re_2", recon.InFlight, func(e *recon.Effect) { e.Money = recon.Money{} }))
	if got := counts(r); got != "2 = 2 + 0 + 0 + 0" {
		t.Errorf("first time: %s", got)
	}
	before := w.shelf()
	if got := counts(w.bring(full, toldEffect("re_2", recon.InFlight))); got != "2 = 1 + 1 + 0 + 0" {
		t.Errorf("again, with an amount that was not known: %s", got)
	}
	if got := counts(w.bring(full, toldEffect("re_2", recon.InFlight))); got != "2 = 0 + 2 + 0 + 0" {
		t.Errorf("the same again: %s", got)
	}
	if got := counts(w.bring(toldEffect("re_1", recon.Completed))); got != "1 = 0 + 1 + 0 + 0" {
		t.Errorf("with fewer columns: %s", got)
	}
	after := w.shelf()
	if len(before) != 2 || len(after) != 2 || after[0] != before[0] {
		t.Errorf("what says nothing new changed the effect:\n%v\n%v", before, after)
	}
	diff(t, "the stored effect", full, w.effect("re_1"))
	if n := one[int](w, `SELECT count(*) FROM reconciler.looks WHERE method = 'file'`); n != 2 {
		t.Errorf("%d looks, want one for each file that told something new", n)
	}
}

// A row of a failure changes the effect that it names, in any order and in any number of
// files, and the ledger ends the same.
func TestAFailureRowChangesItsEffectInAnyOrder(t *testing.T) {
	t.Parallel()
	made := toldEffect("re_1", recon.Completed, func(e *recon.Effect) { e.Reference, e.Parent = "op_1", "ch_1" })
	failed := toldEffect("re_1", recon.EffectFailed, func(e *recon.Effect) { e.CreatedAt, e.UpdatedAt = t0.Add(time.Hour), t0.Add(time.Hour) })
	var want []string
	for name, files := range map[string][][]recon.Effect{
		"one file": {{made, failed}}, "one file, turned round": {{failed, made}}, "two files": {{made}, {failed}}, "two files, turned round": {{failed}, {made}},
	} {
		w := newWorld(t)
		imported := 0
		for _, f := range files {
			imported += w.bring(f...).Imported
		}
		if imported != 2 {
			t.Errorf("%s: %d rows imported, want both", name, imported)
		}
		if got := counts(w.bring(made, failed, made)); got != "3 = 0 + 3 + 0 + 0" {
			t.Errorf("%s, and all again: %s", name, got)
		}
		if got := w.shelf(); want == nil {
			want = got
		} else if !slices.Equal(want, got) {
			t.Errorf("%s ends as\n%v, not\n%v", name, got, want)
		}
		if e := w.effect("re_1"); e.Status != recon.EffectFailed || !e.CreatedAt.Equal(t0) || e.Reference != "op_1" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A provider may tell another story of the same row later: the change is applied with
// its history, and the closed operation is looked at again.
func TestB78_TheProviderRewritesHistory(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	w.importing(operationLine("op_1", `"state":"succeeded","closed_at":"2026-11-02T09:30:00Z"`) + operationLine("op_2", `"state":"succeeded","closed_at":"2026-11-02T09:30:00Z"`))
	next := func(id string) time.Time {
		return one[time.Time](w, `SELECT next_check FROM reconciler.checks WHERE operation_id = $1`, id)
	}
	planned := next("op_2")
	named := func(id string) func(*recon.Effect) { return func(e *recon.Effect) { e.Reference = id } }
	w.bring(toldEffect("T1", recon.Completed, named("op_1")), toldEffect("T2", recon.Completed, named("op_2")))
	if !next("op_2").Equal(planned) {
		t.Error("an operation that is as it should be was made due")
	}
	if got := counts(w.bring(toldEffect("T1", recon.EffectFailed, named("op_1")), toldEffect("T2", recon.Completed, named("op_2")))); got != "2 = 1 + 1 + 0 + 0" {
		t.Errorf("the second file: %s", got)
	}
	if got := one[string](w, `SELECT (before ->> 'status') || ' ' || (after ->> 'status') FROM reconciler.effect_changes WHERE id = 'T1'`); got != "completed failed" {
		t.Errorf("history %q", got)
	}
	if got := next("op_1"); !got.Equal(t0.Add(time.Hour)) || !next("op_2").Equal(planned) {
		t.Errorf("op_1 is looked at %v, op_2 at %v; want the first at once, the second as planned", got, next("op_2"))
	}
	// Had the run ended before it told anybody, the same file again would.
	w.exec(`UPDATE reconciler.checks SET next_check = next_check + interval '1 year'`)
	w.bring(toldEffect("T1", recon.EffectFailed, named("op_1")), toldEffect("T2", recon.Completed, named("op_2")))
	if got := next("op_1"); !got.Equal(t0.Add(time.Hour)) {
		t.Errorf("the same file again: op_1 is looked at %v; want at once", got)
	}
	// The first file again is an earlier stage: nothing goes back.
	if got := counts(w.bring(toldEffect("T1", recon.Completed, named("op_1")))); got != "1 = 0 + 1 + 0 + 0" || w.effect("T1").Status != recon.EffectFailed {
		t.Errorf("the first file again: %s, %s", got, w.effect("T1").Status)
	}
}

// Objects name the movement of their money and not its fee, which comes in a report.
func TestB66_AFeeThatAReportToldStaysWhenTheObjectIsListedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := w.hold()
	listed := func(at time.Time, e recon.Effect) {
		look := recon.Look{
			ID: uuid.NewString(), Source: source, Method: recon.ByList, Outcome: recon.Found, Complete: true, Kind: e.Kind, Account: e.Account, Mode: e.Mode,
			Window: recon.Window{From: t0, To: at}, At: at, Found: []recon.EffectIdentity{e.Identity()},
		}
		w.record(ledger.Batch{Hold: hold, RunID: "run-1", Now: at, Looks: []recon.Look{look}, Effects: []recon.Effect{e}})
	}
	fee, net := int64(119), int64(-1119)
	made := toldEffect("re_1", recon.Completed)
	listed(t0.Add(time.Minute), made)
	if e := w.effect("re_1"); e.Fee != nil {
		t.Fatalf("the fee is %d before anybody told it", *e.Fee)
	}
	w.bring(toldEffect("re_1", recon.Completed, func(e *recon.Effect) { e.Fee, e.Net, e.Settlement = &fee, &net, e.Money }))
	listed(t0.Add(24*time.Hour), made)
	if e := w.effect("re_1"); e.Fee == nil || *e.Fee != fee || e.Net == nil || *e.Net != net || e.Settlement != made.Money || e.NeedsRead {
		t.Errorf("after the next list: fee %v, net %v, settled %v, in doubt %t", e.Fee, e.Net, e.Settlement, e.NeedsRead)
	}
	listed(t0.Add(48*time.Hour), toldEffect("re_1", recon.Completed, func(e *recon.Effect) { e.Money.Minor = 900 }))
	if e := w.effect("re_1"); e.Fee != nil || e.Money.Minor != 900 {
		t.Errorf("with another amount: %s, fee %v", e.Money, e.Fee)
	}
}

// What contradicts what is stored is refused with its line and kept beside; where
// somebody can be asked, the effect is to be read.
func TestARowThatContradictsTheLedgerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bring(toldEffect("re_1", recon.Completed), toldEffect("re_2", recon.Completed))
	other := toldEffect("re_1", recon.Completed, func(e *recon.Effect) { e.Money.Minor = 999 })
	r := w.bring(toldEffect("re_2", recon.Completed), other)
	if counts(r) != "2 = 0 + 1 + 0 + 1" || len(r.Faults) != 1 || r.Faults[0].Line != 3 || !strings.Contains(r.Faults[0].Reason, "same status and another amount") {
		t.Errorf("got %s, %v", counts(r), r.Faults)
	}
	if e := w.effect("re_1"); e.Money.Minor != 1000 || e.NeedsRead {
		t.Errorf("the effect became %+v; nobody can be asked about it", e)
	}
	if _, err := w.importEffects(&effectFile{lines: rowsOf(other)}, true); err != nil {
		t.Fatal(err)
	}
	if e := w.effect("re_1"); e.Money.Minor != 1000 || !e.NeedsRead {
		t.Errorf("the effect became %+v; its provider can be asked", e)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.effect_changes`); n != 1 {
		t.Errorf("%d changes are kept, want one however often it is told", n)
	}
}

// A fault of the file, or the end of the process in the middle, leaves nothing; the same
// file again ends in the same ledger as if nothing had happened.
func TestAFileThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	var effects []recon.Effect
	for i := range 2500 {
		effects = append(effects, toldEffect(fmt.Sprintf("re_%04d", i%2000), recon.Completed))
	}
	w := newWorld(t)
	fault := errors.New("line 9: a quote is opened and never closed")
	r, err := w.importEffects(&effectFile{lines: rowsOf(effects...), fault: fault}, false)
	if !errors.Is(err, fault) || counts(r) != "2500 = 0 + 0 + 0 + 2500" || len(w.shelf()) != 0 {
		t.Errorf("a fault of the file: %v, %s, %d stored", err, counts(r), len(w.shelf()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = w.led.ImportEffects(ctx, ledger.EffectImport{
		Source: source, System: "stripe", File: &effectFile{lines: rowsOf(effects...), stop: cancel}, Now: t0,
	})
	if err == nil || len(w.shelf()) != 0 {
		t.Errorf("interrupted: %v, %d stored", err, len(w.shelf()))
	}
	if got := counts(w.bring(effects...)); got != "2500 = 2000 + 500 + 0 + 0" || len(w.shelf()) != 2000 {
		t.Errorf("run again: %s, %d stored", got, len(w.shelf()))
	}
}

// What only the database finds wrong is refused alone.
func TestARowThatTheDatabaseRefusesStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	huge := func(e *recon.Effect) { e.Metadata = json.RawMessage(`{"n": 1e999999}`) }
	lines := rowsOf(toldEffect("a", recon.Completed), toldEffect("b", recon.Completed, huge), toldEffect("c", recon.Completed),
		toldEffect("d", recon.InFlight), toldEffect("d", recon.Completed, huge), toldEffect("b", recon.Completed))
	lines = append(lines, ledger.EffectLine{Refused: "its amount cannot be read"}, ledger.EffectLine{SetAside: true})
	r, err := w.importEffects(&effectFile{lines: lines}, false)
	if err != nil {
		t.Fatal(err)
	}
	refused := []int{}
	for _, f := range r.Faults {
		refused = append(refused, f.Line)
	}
	if counts(r) != "8 = 4 + 0 + 1 + 3" || !slices.Equal(refused, []int{3, 6, 8}) || len(w.shelf()) != 4 {
		t.Errorf("got %s, refused lines %v, %d stored", counts(r), refused, len(w.shelf()))
	}
}

// A file that declares a complete range is a complete look at it, unless a row of it
// could not be read.
func TestAFileThatIsCompleteIsALookAtItsRange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	window := recon.Window{From: t0.Add(-time.Hour), To: t0}
	in := func(to time.Time, lines ...ledger.EffectLine) error {
		_, err := w.led.ImportEffects(t.Context(), ledger.EffectImport{
			Source: source, System: "stripe", File: &effectFile{lines: lines}, Name: "x.csv", Now: t0.Add(time.Hour),
			Complete: ledger.Completeness{Window: recon.Window{From: window.From, To: to}, Places: []ledger.Place{{"refund", "acct_1", "live"}, {"refund", "acct_2", "live"}}},
		})
		return err
	}
	covered := func() string {
		return one[string](w, `SELECT coalesce(string_agg(format('%s %s %s', c.account, k.outcome, k.complete), ', ' ORDER BY c.account), '')
			FROM reconciler.coverage c JOIN reconciler.looks k USING (tenant, look_id) WHERE k.at = c.window_to AND k.method = 'file'`)
	}
	if err := in(window.To, ledger.EffectLine{Refused: "its amount cannot be read"}); err != nil || covered() != "" {
		t.Errorf("a file with a refused row covers %q, %v", covered(), err)
	}
	if err := in(t0.Add(2*time.Hour), rowsOf(toldEffect("re_1", recon.Completed))...); err == nil || len(w.shelf()) != 0 {
		t.Errorf("a range that ends in the future was taken: %v", err)
	}
	if err := in(window.To, rowsOf(toldEffect("re_1", recon.Completed))...); err != nil || covered() != "acct_1 found t, acct_2 absent t" {
		t.Errorf("covered %q, %v", covered(), err)
	}
}

// The daemon's role may bring files in; a database that keeps temporary tables from it
// says what is missing.
func TestTheDaemonsRoleMayImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.url + map[bool]string{true: "&", false: "?"}[strings.Contains(w.url, "?")] + "options=-c%20role%3Dreconciler_daemon"
	var err error
	if w.led, err = ledger.Open(t.Context(), ledger.Options{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.led.Close)
	w.bring(toldEffect("re_1", recon.Completed))
	w.bring(toldEffect("re_1", recon.EffectFailed))
	w.exec(fmt.Sprintf(`REVOKE TEMPORARY ON DATABASE %s FROM PUBLIC`, pgx.Identifier{one[string](w, `SELECT current_database()`)}.Sanitize()))
	_, err = w.importEffects(&effectFile{lines: rowsOf(toldEffect("re_2", recon.Completed))}, false)
	if err == nil || !strings.Contains(err.Error(), "GRANT TEMPORARY ON DATABASE") {
		t.Errorf("without temporary tables: %v", err)
	}
}

// A schedule that fires twice brings the same rows in twice at the same moment, once in
// another order: every effect is there once, and each row was counted by one of the two.
func TestB114_TheSameFileTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var effects []recon.Effect
	for i := range 3000 {
		effects = append(effects, toldEffect(fmt.Sprintf("re_%04d", i), recon.Completed))
	}
	results := make(chan ledger.ImportResult, 2)
	back := slices.Clone(effects)
	slices.Reverse(back)
	var both errgroup.Group
	for _, rows := range [][]recon.Effect{effects, back} {
		both.Go(func() error {
			r, err := w.importEffects(&effectFile{lines: rowsOf(rows...)}, false)
			results <- r
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	a, b := <-results, <-results
	if a.Imported+b.Imported != 3000 || a.Repeated+b.Repeated != 3000 || len(w.shelf()) != 3000 {
		t.Errorf("got %s and %s, %d stored", counts(a), counts(b), len(w.shelf()))
	}
}

// One thing that fails every day is as many effects as there are rows, however alike
// they are: what keeps failing is told by their number.
func TestB58_TheSameFailureTwentyEightTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var effects []recon.Effect
	for i := range 28 {
		effects = append(effects, toldEffect(fmt.Sprintf("ch_%d", i), recon.EffectFailed, func(e *recon.Effect) {
			e.Kind, e.Target, e.CreatedAt = "charge", "subscription:7", t0.AddDate(0, 0, -i)
		}))
	}
	if got := counts(w.bring(effects...)); got != "28 = 28 + 0 + 0 + 0" {
		t.Errorf("got %s", got)
	}
	if got := counts(w.bring(effects[3:]...)); got != "25 = 0 + 25 + 0 + 0" {
		t.Errorf("an overlapping export: %s", got)
	}
}

// Sums hold whatever comes in, overlapping exports end in the same ledger as one whole
// one, and what was there before is never lost.
func TestImportsOfEffectsKeepTheirLaws(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.exec(`DELETE FROM reconciler.effects`)
		var all []recon.Effect
		for range rapid.IntRange(1, 12).Draw(rt, "rows") {
			status := rapid.SampledFrom([]recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed}).Draw(rt, "status")
			e := toldEffect(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id"), status, func(e *recon.Effect) {
				e.CreatedAt = t0.Add(time.Duration(e.Status.Rank()) * time.Hour)
			})
			all = append(all, e)
		}
		whole := w.bring(all...)
		want := w.shelf()
		if again := w.bring(all...); again.Repeated != whole.Rows {
			rt.Fatalf("again: %s", counts(again))
		}
		w.exec(`DELETE FROM reconciler.effects`)
		cut := rapid.IntRange(0, len(all)-1).Draw(rt, "cut")
		back := rapid.IntRange(0, cut).Draw(rt, "overlap")
		w.bring(all[:cut]...)
		w.bring(all[back:]...)
		if got := w.shelf(); !slices.Equal(want, got) {
			rt.Fatalf("two overlapping files end as\n%v, not\n%v", got, want)
		}
	})
}

// effect reads one stored effect as it stands in the table.
func (w *world) effect(id string) recon.Effect {
	w.Helper()
	e := recon.Effect{ID: id, Source: source, System: "stripe"}
	var text [10]*string
	var amount, settled *int64
	var updated *time.Time
	var metadata []byte
	err := w.db.QueryRow(w.Context(), `SELECT kind, status, currency, parent, target, reference, natural_reference, key, settlement_currency, created_by,
		failure_reason, caused_by, account, mode, amount, settlement_amount, other_parents, created_at, updated_at, fee, net, metadata, needs_read
		FROM reconciler.effects WHERE id = $1`, id).Scan(&e.Kind, &e.Status, &text[0], &text[1], &text[2], &text[3], &text[4], &text[5], &text[6], &text[7],
		&text[8], &text[9], &e.Account, &e.Mode, &amount, &settled, &e.OtherParents, &e.CreatedAt, &updated, &e.Fee, &e.Net, &metadata, &e.NeedsRead)
	if err != nil {
		w.Fatal(err)
	}
	for i, to := range []*string{&e.Money.Currency, &e.Parent, &e.Target, &e.Reference, &e.NaturalReference, &e.Key, &e.Settlement.Currency,
		&e.CreatedBy, &e.FailureReason, &e.CausedBy} {
		if text[i] != nil {
			*to = *text[i]
		}
	}
	for to, from := range map[*int64]*int64{&e.Money.Minor: amount, &e.Settlement.Minor: settled} {
		if from != nil {
			*to = *from
		}
	}
	if e.CreatedAt = e.CreatedAt.UTC(); updated != nil {
		e.UpdatedAt = updated.UTC()
	}
	e.Metadata = metadata
	return e
}
