package nightly

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// world is a ledger with one source, whose clock stands at now.
type world struct {
	t   *testing.T
	l   *ledger.Ledger
	url string
	p   recon.Policy
	s   *shop
	now time.Time
}

func newWorld(t *testing.T, now time.Time) *world {
	t.Helper()
	w := &world{t: t, url: pgtest.URL(t, pgtest.SimulatedTime(now)), now: now}
	w.s = &shop{name: "stripe-main", places: []recon.Account{{Account: "acct_1", Mode: "live"}}, sheet: recon.Sheet{System: "stripe",
		Kinds: []string{"refund"}, Accounts: []recon.Account{{Account: "acct_1", Mode: "live"}}, Abilities: []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong}}}}
	w.l = w.open(w.url)
	w.p = recon.DefaultPolicy()
	w.p.Action, w.p.Source, w.p.Effect, w.p.Class = "refund.create", "stripe-main", "refund", recon.Irreversible
	w.p.System, w.p.Accounts = "stripe", w.s.sheet.Accounts
	if _, err := w.l.ApplyPolicies(t.Context(), []recon.Policy{w.p}, now); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) open(url string) *ledger.Ledger {
	w.t.Helper()
	l, err := ledger.Open(w.t.Context(), ledger.Options{URL: url})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(l.Close)
	return l
}

// at moves the clock.
func (w *world) at(now time.Time) {
	w.t.Helper()
	w.now = now
	if err := w.l.SetSimulatedTime(w.t.Context(), now); err != nil {
		w.t.Fatal(err)
	}
}

// operation records one that was sent and never answered, and its refund where there is one.
func (w *world) operation(id string, created time.Time, refunded bool) {
	w.t.Helper()
	w.imports(id, "unknown", created)
	if refunded {
		w.s.effects = append(w.s.effects, recon.Effect{ID: "re_" + id, Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed,
			Money: recon.Money{Minor: 1000, Currency: "EUR"}, Parent: "ch_" + id, Reference: id, Account: "acct_1", Mode: "live", CreatedAt: created.Truncate(time.Second)})
	}
}

// imports records an operation of another system, in a state.
func (w *world) imports(id, state string, created time.Time) {
	w.t.Helper()
	line := fmt.Sprintf(`{"id":%q,"source":"stripe-main","action":"refund.create","target":"order:%s","parent":"ch_%s","amount":1000,"currency":"EUR","state":%q,"created_at":%q,"sent_at":%q,"account":"acct_1","mode":"live","marks":["reference"]}`,
		id, id, id, state, created.Format(time.RFC3339Nano), created.Format(time.RFC3339Nano))
	if r, err := w.l.Import(w.t.Context(), strings.NewReader(line), w.now); err != nil || r.Imported != 1 {
		w.t.Fatalf("import %s: %+v, %v", line, r, err)
	}
}

func (w *world) audit(from, to time.Time) {
	w.t.Helper()
	audit(w.t, w.l, w.s, w.p, recon.Window{From: from, To: to}, w.now)
}

func (w *world) report(from, to time.Time) *reports.Nightly {
	w.t.Helper()
	n, err := Report{Ledger: w.l, Zone: from.Location(), Holder: "test/1"}.Make(w.t.Context(), recon.Window{From: from, To: to}, from.Format(time.DateOnly))
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func files(t *testing.T, n *reports.Nightly) map[string][]byte {
	t.Helper()
	list, err := reports.NightlyFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range list {
		all[f.Name] = f.Data
	}
	return all
}

func day(t *testing.T, name, zoneName string) (from, to time.Time) {
	t.Helper()
	from, err := time.ParseInLocation(time.DateOnly, name, zone(t, zoneName))
	if err != nil {
		t.Fatal(err)
	}
	return from, from.AddDate(0, 0, 1)
}

// The last moment of the day is in it, the first of the next is not.
func TestB34_TheLastMomentOfADayIsInItsReport(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, to.Add(3*time.Hour))
	for i, at := range []time.Time{from.Add(-time.Microsecond), from, from.Add(13 * time.Hour), to.Add(-time.Microsecond), to} {
		w.operation(fmt.Sprintf("op_%d", i), at, true)
	}
	w.audit(from, to)
	n := w.report(from, to)
	if n.Totals.Operations != 3 || n.Totals.Effects != 3 {
		t.Errorf("%d operations and %d effects, want 3 of both", n.Totals.Operations, n.Totals.Effects)
	}
	if n.Standing() != reports.StandAccounted {
		t.Errorf("standing %s; findings %+v", n.Standing(), n.Findings)
	}
}

// The month ends in the zone of the report, which stands on it; so the same instant is of
// another month in another zone.
func TestB35_AReportsMonthEndsInItsZone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Date(2026, 11, 5, 0, 0, 0, 0, time.UTC))
	w.operation("op_june", time.Date(2026, 6, 1, 3, 30, 0, 0, time.UTC), true)
	w.operation("op_october", time.Date(2026, 10, 31, 22, 59, 59, 0, time.UTC), true)
	w.operation("op_november", time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC), true)
	w.audit(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 4, 0, 0, 0, 0, time.UTC))
	for _, tt := range []struct {
		zone  string
		month time.Month
		want  int
		hours float64
	}{
		{"America/Mexico_City", time.May, 1, 744}, {"America/Mexico_City", time.June, 0, 720},
		{"UTC", time.May, 0, 744}, {"UTC", time.June, 1, 720},
		{"Europe/Oslo", time.October, 1, 745}, {"Europe/Oslo", time.November, 1, 720},
	} {
		from := time.Date(2026, tt.month, 1, 0, 0, 0, 0, zone(t, tt.zone))
		n := w.report(from, from.AddDate(0, 1, 0))
		if n.Totals.Operations != tt.want || n.Totals.Effects != tt.want || n.Window.Hours != tt.hours {
			t.Errorf("%s in %s: %d operations, %d effects, %g hours; want %d in %g hours", tt.month, tt.zone, n.Totals.Operations, n.Totals.Effects, n.Window.Hours, tt.want, tt.hours)
		}
		if text := string(files(t, n)[n.Base()+".txt"]); !strings.Contains(text, "zone "+tt.zone) {
			t.Errorf("the report does not say its zone %s", tt.zone)
		}
	}
}

// The day on which clocks go back has 25 hours and one report, however often it is made.
func TestB89_TheLongDayOfAutumnHasOneReport(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-11-01", "America/New_York")
	w := newWorld(t, to.Add(3*time.Hour))
	w.operation("op_first", time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC), true)  // 01:30 EDT
	w.operation("op_second", time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), true) // 01:30 EST
	w.audit(from, to)
	first := w.report(from, to)
	if first.Window.Hours != 25 || first.Totals.Operations != 2 {
		t.Errorf("%g hours with %d operations, want 25 and 2", first.Window.Hours, first.Totals.Operations)
	}
	w.at(w.now.Add(time.Hour))
	same(t, first, w.report(from, to))
}

func same(t *testing.T, a, b *reports.Nightly) {
	t.Helper()
	x, y := files(t, a), files(t, b)
	if len(x) != len(y) {
		t.Errorf("%d files, then %d", len(x), len(y))
	}
	for name := range x {
		if !bytes.Equal(x[name], y[name]) {
			t.Errorf("%s is not the same", name)
		}
	}
}

// Processes that make the report of one day at once write the same files, and keep one.
func TestB114_AReportMadeByManyAtOnceIsOne(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "Europe/Berlin")
	w := newWorld(t, to.Add(3*time.Hour))
	w.operation("op_1", from.Add(time.Hour), false)
	w.operation("op_2", from.Add(2*time.Hour), true)
	w.audit(from, to)
	made := make([]*reports.Nightly, 6)
	var group sync.WaitGroup
	for i := range made {
		group.Go(func() {
			n, err := Report{Ledger: w.l, Zone: from.Location(), Holder: fmt.Sprint("test/", i)}.Make(t.Context(), recon.Window{From: from, To: to}, "2026-02-10")
			if err != nil {
				t.Error(err)
			}
			made[i] = n
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for _, n := range made[1:] {
		same(t, made[0], n)
	}
	if kept := scalar[int](t, w.url, `SELECT count(*) FROM reconciler.runs WHERE tenant = 'default' AND name = 'report'`); kept != 1 {
		t.Errorf("%d reports were kept", kept)
	}
	snapshot, err := w.l.Snapshot(t.Context(), w.now)
	if err != nil {
		t.Fatal(err)
	}
	if _, watched := snapshot.RunLastSuccess["report"]; watched || len(snapshot.RunLastSuccess) != 1 {
		t.Errorf("a report that nobody makes again would be missed: %v", snapshot.RunLastSuccess)
	}
}

func scalar[T any](t *testing.T, url, sql string, args ...any) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Without an audit, and before the day is over, a report says so and is not kept; what was
// not looked into is told to the second.
func TestAReportSaysWhatNobodyLookedInto(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "Europe/Berlin")
	w := newWorld(t, from.Add(10*time.Hour))
	w.operation("op_1", from.Add(time.Hour), true)
	n := w.report(from, to)
	if n.Ended || n.Standing() != reports.StandNotAudited || len(n.NotAudited) != 1 || !n.NotAudited[0].To.Equal(w.now) {
		t.Errorf("ended %v, standing %s, not audited %+v", n.Ended, n.Standing(), n.NotAudited)
	}
	w.audit(from, from.Add(8*time.Hour))
	w.at(to.Add(time.Hour))
	w.audit(from.Add(12*time.Hour), to)
	n = w.report(from, to)
	if len(n.NotAudited) != 1 || !n.NotAudited[0].From.Equal(from.Add(8*time.Hour)) || !n.NotAudited[0].To.Equal(from.Add(12*time.Hour)) {
		t.Errorf("not audited: %+v, want 08:00 to 12:00", n.NotAudited)
	}
	if n.Standing() != reports.StandNotAudited || len(n.Audits) != 2 || n.Classes == nil {
		t.Errorf("standing %s with %d audits", n.Standing(), len(n.Audits))
	}
	w.audit(from, to)
	if n = w.report(from, to); len(n.Audits) != 1 || len(n.NotAudited) != 0 || n.Standing() != reports.StandAccounted {
		t.Errorf("one audit saw it all: %d audits, not audited %+v, standing %s", len(n.Audits), n.NotAudited, n.Standing())
	}
}

// Nights overlap by an hour: their classes are not added, and the day's own totals are.
func TestNightsThatOverlapCountNothingTwice(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "Europe/Berlin")
	w := newWorld(t, from.Add(135*time.Minute))
	w.operation("op_1", from.Add(time.Hour), true)
	w.audit(from.Add(-22*time.Hour), from.Add(2*time.Hour))
	w.at(to.Add(135 * time.Minute))
	w.operation("op_2", from.Add(90*time.Minute), true)
	w.operation("op_3", from.Add(20*time.Hour), true)
	w.audit(from.Add(time.Hour), to.Add(2*time.Hour))
	n := w.report(from, to)
	if len(n.Audits) != 2 || n.Classes != nil || len(n.NotAudited) != 0 {
		t.Errorf("%d audits, classes %+v, not audited %+v", len(n.Audits), n.Classes, n.NotAudited)
	}
	if n.Totals.Operations != 3 || n.Operations[0].All.Count != 3 || *n.Operations[0].All.Amount != 3000 {
		t.Errorf("operations %+v", n.Operations)
	}
}

// An audit that failed after the last good one is told with why.
func TestAnAuditThatFailedIsTold(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "Europe/Berlin")
	w := newWorld(t, to.Add(time.Hour))
	run, err := w.l.BeginRun(t.Context(), ledger.RunStart{Name: "audit/stripe-main", Holder: "test/1", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.l.FinishRun(t.Context(), run, ledger.RunEnd{Outcome: ledger.RunFailed, Error: "the disk is full"}); err != nil {
		t.Fatal(err)
	}
	if n := w.report(from, to); len(n.Failed) != 1 || !strings.Contains(n.Failed[0].Why, "the disk is full") {
		t.Errorf("failed: %+v", n.Failed)
	}
	w.audit(from, to)
	if n := w.report(from, to); len(n.Failed) != 0 {
		t.Errorf("a later good audit makes up for it, and still %+v", n.Failed)
	}
}

// An audit of a month tells findings of all its days; the report of a day has those of the
// day, and none of another that was found later.
func TestADayHasItsOwnFindingsOfAWideAudit(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, to.Add(240*time.Hour))
	for i, at := range []time.Time{from.Add(-24 * time.Hour), from.Add(time.Hour), to.Add(24 * time.Hour)} {
		w.operation(fmt.Sprintf("op_%d", i), at, true)
		w.s.effects[i].Money.Minor = 999
	}
	w.audit(from.Add(-48*time.Hour), to.Add(48*time.Hour))
	n := w.report(from, to)
	if len(n.Findings) != 1 || n.Findings[0].Operations[0] != "op_1" || !n.Findings[0].InRange {
		t.Errorf("findings of the day: %+v", n.Findings)
	}
	if found := w.report(from.Add(264*time.Hour), to.Add(264*time.Hour)); len(found.Findings) != 3 {
		t.Errorf("%d findings were opened on the day of the audit, want 3", len(found.Findings))
	}
}

// Fees add up with their sign; those of 0 and those given back are known, the others are
// counted as not known.
func TestB65_FeesAddUpWithTheirSign(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, to.Add(time.Hour))
	for i, fee := range []*int64{new(int64), minor(216), minor(-186), nil} {
		w.operation(fmt.Sprintf("op_%d", i), from.Add(time.Hour), true)
		w.s.effects[i].Fee = fee
		if fee != nil {
			w.s.effects[i].Net = minor(1000 - *fee)
		}
	}
	w.audit(from, to)
	n := w.report(from, to)
	if len(n.Fees) != 1 || n.Fees[0].Known.Count != 3 || *n.Fees[0].Known.Amount != 30 || n.Fees[0].NotKnown != 1 {
		t.Errorf("fees: %+v", n.Fees)
	}
}

func minor(n int64) *int64 { return &n }

// How long doubts lasted is counted from when they began to when evidence ended them.
func TestTimeToTruthIsThatOfTheDaysClosings(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, from.Add(12*time.Hour))
	w.operation("op_1", from.Add(11*time.Hour), true)
	w.operation("op_2", from.Add(2*time.Hour), true)
	w.operation("op_3", from.Add(3*time.Hour), false)
	w.audit(from, from.Add(12*time.Hour))
	n := w.report(from, to)
	began := func(id recon.OperationID) float64 {
		s, err := w.l.Story(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return w.now.Sub(s.Operation.UnknownSince).Seconds()
	}
	if n.Truth.Closed != 2 || *n.Truth.Median != began("op_1") || *n.Truth.Longest != began("op_2") || *n.Truth.Median >= *n.Truth.P99 {
		t.Errorf("time to truth %+v", n.Truth)
	}
	open := 0
	for _, l := range n.Open {
		open += l.Count
	}
	if open != 1 {
		t.Errorf("%d open operations, want 1: %+v", open, n.Open)
	}
	if n := w.report(to, to.Add(time.Hour)); n.Truth.Closed != 0 || n.Truth.Median != nil {
		t.Errorf("another day closed %+v", n.Truth)
	}
}

// A refund of shortly before midnight that is found to be missing later belongs to its day,
// whoever found it: here no audit tells of it.
func TestWhatIsFoundLaterIsOfTheOperationsDay(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, to.Add(-time.Minute))
	w.operation("op_seen", from.Add(time.Hour), true) // a source without effects is not seen
	w.imports("op_late", "succeeded", to.Add(-2*time.Minute))
	w.at(to.Add(48 * time.Hour))
	w.audit(from, to)
	findings := func(from, to time.Time) []ledger.FindingRow {
		p, err := w.l.Period(t.Context(), recon.Window{From: from, To: to}, func([]ledger.Run) ([]string, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		return p.Findings
	}
	if got := findings(from, to); len(got) != 1 || !got[0].OpenedAt.After(to) {
		t.Errorf("the operation's day tells %+v, want the finding of two days later", got)
	}
	if got := findings(from.AddDate(0, 0, -1), from); len(got) != 0 {
		t.Errorf("the day before tells %+v", got)
	}
}

// Anyone can compute the digest again from the journal; later entries do not change it.
func TestTheDigestIsThatOfTheDaysHeads(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, from.Add(12*time.Hour))
	for _, id := range []string{"op_b", "op_B", "op_a", "op_ä", "op-c"} {
		w.operation(id, from.Add(11*time.Hour), id != "op_a")
	}
	period := func() ledger.Heads {
		p, err := w.l.Period(t.Context(), recon.Window{From: from, To: to}, func([]ledger.Run) ([]string, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		return p.Changed
	}
	w.audit(from, from.Add(12*time.Hour))
	got := period()
	if want := w.heads(from, to); got.Digest != want || got.Operations != 5 {
		t.Errorf("digest %s over %d operations, want %s over 5", got.Digest, got.Operations, want)
	}
	w.at(to.Add(48 * time.Hour))
	w.audit(from, to)
	if again := period(); again != got {
		t.Errorf("entries of later days made it %+v, it was %+v", again, got)
	}
}

// heads computes the digest in the plainest way.
func (w *world) heads(from, to time.Time) string {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(w.t.Context()))
	rows, err := conn.Query(w.t.Context(), `SELECT operation_id, seq, hash FROM reconciler.journal WHERE at >= $1 AND at < $2`, from, to)
	if err != nil {
		w.t.Fatal(err)
	}
	type head struct {
		seq  int64
		hash []byte
	}
	last := map[string]head{}
	var id string
	var h head
	if _, err := pgx.ForEachRow(rows, []any{&id, &h.seq, &h.hash}, func() error {
		if h.seq > last[id].seq {
			last[id] = head{h.seq, bytes.Clone(h.hash)}
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	ids := make([]string, 0, len(last))
	for id := range last {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	all := sha256.New()
	for _, id := range ids {
		fmt.Fprintf(all, "%s %d %s\n", id, last[id].seq, hex.EncodeToString(last[id].hash))
	}
	return hex.EncodeToString(all.Sum(nil))
}

// A role that may only read gets the same report, and is told that it is not kept.
func TestWhoMayOnlyReadGetsAReportThatIsNotKept(t *testing.T) {
	t.Parallel()
	from, to := day(t, "2026-02-10", "UTC")
	w := newWorld(t, to.Add(time.Hour))
	w.operation("op_1", from.Add(time.Hour), true)
	w.audit(from, to)
	config, err := pgx.ParseConfig(w.url)
	if err != nil {
		t.Fatal(err)
	}
	viewer := w.open(w.url + separator(w.url) + "options=-crole%3Dreconciler_viewer")
	var said error
	n, err := Report{Ledger: viewer, Zone: time.UTC, Holder: "test/1", Unkept: func(err error) { said = err }}.Make(t.Context(), recon.Window{From: from, To: to}, "2026-02-10")
	if err != nil {
		t.Fatalf("as a viewer of %s: %v", config.Database, err)
	}
	if said == nil {
		t.Error("nobody was told that the report is not kept")
	}
	if kept := scalar[int](t, w.url, `SELECT count(*) FROM reconciler.runs WHERE tenant = 'default' AND name = 'report'`); kept != 0 {
		t.Errorf("%d reports were kept by a viewer", kept)
	}
	same(t, n, w.report(from, to))
}

func separator(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}

// Taking windows out leaves exactly the instants that none of them holds.
func TestWhatIsLeftIsWhatNoWindowHolds(t *testing.T) {
	t.Parallel()
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(r *rapid.T) {
		window := func(name string) recon.Window {
			from := rapid.IntRange(0, 40).Draw(r, name)
			return recon.Window{From: base.Add(time.Duration(from) * time.Second), To: base.Add(time.Duration(from+rapid.IntRange(1, 20).Draw(r, name+" length")) * time.Second)}
		}
		whole := window("whole")
		left := []recon.Window{whole}
		var taken []recon.Window
		for i := range rapid.IntRange(0, 5).Draw(r, "windows") {
			taken = append(taken, window(fmt.Sprint("window ", i)))
			left = without(left, taken[i])
		}
		holds := func(list []recon.Window, at time.Time) bool {
			return slices.ContainsFunc(list, func(w recon.Window) bool { return w.Contains(at) })
		}
		for s := range 70 {
			at := base.Add(time.Duration(s) * time.Second)
			if want := whole.Contains(at) && !holds(taken, at); holds(left, at) != want {
				r.Fatalf("second %d: left is %v, want %v", s, !want, want)
			}
		}
	})
}
