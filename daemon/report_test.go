package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/nightly"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A night with its audit and its report was missed. Two replicas start: the audit is made
// up for first, then the report of the day before, once, and it is told once, also when
// another tick makes it again.
func TestTheReportOfTheDayBeforeIsMadeAfterTheAuditsAndToldOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 4, 0, 0, 0, time.UTC)
	stripe, err := stripetest.Start(stripetest.Options{
		Now: func() time.Time { return at }, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	slack, err := slacktest.Start(slacktest.Options{Token: "xoxb-TESTONLY", Channels: []string{"payments-recon", "payments-leads"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	url, out := pgtest.URL(t, pgtest.SimulatedTime(at)), filepath.Join(t.TempDir(), "reports")
	const text = oneSource + `
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}
    - {name: leads, kind: slack, settings: {channel: "#payments-leads", token: "${TOKEN}", api_url: "${SLACK_URL}"}}
  ladders: {default: []}
  digest: {schedule: "0 0 1 1 *", to: [leads]}
reports: {out: "%s"}
schedule: {sweep: "off", reverify: "off", audit: "15 2 * * *", report: "%s"}
`
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL()}
	c := parse(t, fmt.Sprintf(text, out, "0 3 * * *"), environ)
	l := aDayOfTwo(t, url, c.Policies, at.Add(-12*time.Hour))
	for id, amount := range map[string]int64{"op_right": 1000, "op_wrong": 1001, "op_before": 1000} {
		made := at.Add(-12 * time.Hour)
		if id == "op_before" {
			made = made.Add(-24 * time.Hour)
		}
		_, err := stripe.AddRefund(stripetest.Refund{
			Account: "acct_1", Mode: "live", Charge: "ch_" + id, Amount: amount, Currency: "eur",
			Created: made, Metadata: map[string]string{"op_id": id},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first, second := start(t, c, url), start(t, c, url)
	first.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="report/day"\} 1`)
	if _, body := second.get("/metrics"); strings.Contains(body, `{run="report"}`) {
		t.Error("a kept report is watched as a run")
	}
	told := slack.Messages("payments-leads")
	for deadline := time.Now().Add(20 * time.Second); len(told) == 0 && time.Now().Before(deadline); told = slack.Messages("payments-leads") {
		time.Sleep(50 * time.Millisecond)
	}
	for _, r := range []*running{first, second} {
		if err := r.stop(); err != nil || strings.Contains(r.log.String(), "run failed") {
			t.Errorf("a replica: %v\n%s", err, r.log)
		}
	}
	if len(told) != 1 {
		t.Fatalf("%d messages, want one\n%s", len(told), first.log)
	}
	page := filepath.Join(out, "report-2026-03-01.html")
	for _, part := range []string{"Report of 2026-03-01: 1 finding waits for a person\n", "2 operations opened, 2 effects made", "2 operations: 20.00 EUR, of it done 10.00 EUR (1)",
		"1 mismatch – ", page} {
		if !strings.Contains(told[0].Plain(), part) {
			t.Errorf("the message does not say %q:\n%s", part, told[0].Plain())
		}
	}
	wantReportRuns(t, l, 1)
	wantFolderOfTheVerb(t, l, out)

	again := start(t, parse(t, fmt.Sprintf(text, out, "30 3 * * *"), environ), url)
	again.await("/metrics", 200, `^reconciler_run_duration_seconds_count\{run="report/day"\} 1$`)
	if err := again.stop(); err != nil {
		t.Error(err)
	}
	wantReportRuns(t, l, 2)
	wantFolderOfTheVerb(t, l, out)
	if n := len(slack.Messages("payments-leads")) + len(slack.Messages("payments-recon")); n != 1 {
		t.Errorf("%d messages after the day was reported again, want the one", n)
	}
	if n, err := l.DueNotices(t.Context(), at.Add(time.Hour), 10); err != nil || len(n) != 0 {
		t.Errorf("notices wait: %+v, %v", n, err)
	}
}

// aDayOfTwo is a ledger with two operations in doubt, and one of the day before, so that
// the first audit sees all of their day.
func aDayOfTwo(t *testing.T, url string, policies []recon.Policy, at time.Time) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if _, err := l.ApplyPolicies(t.Context(), policies, at); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, id := range []recon.OperationID{"op_right", "op_wrong", "op_before"} {
		made := at
		if id == "op_before" {
			made = at.Add(-24 * time.Hour)
		}
		line, err := recon.MarshalOperation(recon.Operation{
			ID: id, Source: "stripe-main", Action: "refund.create", Target: "order:" + string(id), Parent: "ch_" + string(id),
			Money: recon.Money{Minor: 1000, Currency: "EUR"}, State: recon.Unknown, Account: "acct_1", Mode: "live",
			CreatedAt: made, SentAt: made, Marks: []recon.Mark{recon.MarkReference},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if r, err := l.Import(t.Context(), strings.NewReader(lines.String()), at); err != nil || r.Imported != 3 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	return l
}

func wantReportRuns(t *testing.T, l *ledger.Ledger, want int) {
	t.Helper()
	runs, err := l.LastRuns(t.Context(), runReport, 10)
	if err != nil || len(runs) != want || slices.ContainsFunc(runs, func(r ledger.Run) bool { return r.Outcome != ledger.RunDone }) {
		t.Errorf("runs %+v, %v, want %d that are done", runs, err, want)
	}
}

// wantFolderOfTheVerb compares what stands in the folder with what anybody makes now.
func wantFolderOfTheVerb(t *testing.T, l *ledger.Ledger, dir string) {
	t.Helper()
	w, name := nightly.DayBefore(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), time.UTC)
	n, err := nightly.Report{Ledger: l, Zone: time.UTC, Holder: "test/1"}.Make(t.Context(), w, name)
	if err != nil {
		t.Fatal(err)
	}
	files, err := reports.NightlyFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range files {
		want = append(want, f.Name)
		if b, err := os.ReadFile(filepath.Join(dir, f.Name)); err != nil || string(b) != string(f.Data) {
			t.Errorf("%s is another file than the verb's: %v", f.Name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the folder (-want +got):\n%s", diff)
	}
}

// A folder that cannot be written loses nobody the news of the day: it is told without its
// page, and the log says how the files are made once there is room.
func TestADayIsToldAlsoWhereItsFilesCannotBeWritten(t *testing.T) {
	t.Parallel()
	stripe, slack := startFakes(t)
	out := filepath.Join(t.TempDir(), "reports")
	if err := os.WriteFile(out, nil, 0o600); err != nil { // a file stands where the folder belongs
		t.Fatal(err)
	}
	d := start(t, parse(t, oneSource+`
escalation:
  destinations: [{name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}]
reports: {out: "`+out+`", to: [recon]}
schedule: {sweep: "off", reverify: "off", audit: "off"}
`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL()}), pgtest.URL(t))
	day := time.Now().UTC().Add(-3*time.Hour).AddDate(0, 0, -1).Format(time.DateOnly)
	told := slack.Messages("payments-recon")
	for deadline := time.Now().Add(20 * time.Second); len(told) == 0 && time.Now().Before(deadline); told = slack.Messages("payments-recon") {
		time.Sleep(50 * time.Millisecond)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || !strings.Contains(told[0].Plain(), "Report of "+day) || !strings.Contains(told[0].Plain(), "Its files could not be written") || strings.Contains(told[0].Plain(), "The page:") {
		t.Errorf("told %+v", told)
	}
	for _, part := range []string{"run failed", "the folder cannot be made: not a directory", "`reconciler report --day " + day + " --out " + out + "` writes the files of the day"} {
		if !strings.Contains(d.log.String(), part) {
			t.Errorf("the log does not say %q:\n%s", part, d.log)
		}
	}
}

// A report waits while an audit has not begun, is under way, or died and is done again.
func TestAReportWaitsForTheAuditsOfItsNight(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(at.Add(-24*time.Hour)))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	d := &daemon{Options: Options{Config: parse(t, oneSource, map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"}), Log: slog.Default()}}
	want := func(when string, open int) {
		t.Helper()
		got, err := d.openAudits(t.Context(), l, at.Add(-45*time.Minute))
		if err != nil || len(got) != open {
			t.Errorf("%s: open audits %v, %v, want %d", when, got, err, open)
		}
	}
	run := func(end string) {
		t.Helper()
		r, err := l.BeginRun(t.Context(), ledger.RunStart{Name: "audit/stripe-main", Holder: "test/1", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		want("while an audit is under way", 1)
		if err := l.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: end, Error: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	want("before any audit", 1)
	run(ledger.RunDone)
	want("after that of the night before", 1)
	if err := l.SetSimulatedTime(t.Context(), at.Add(-40*time.Minute)); err != nil {
		t.Fatal(err)
	}
	run(ledger.RunAbandoned)
	want("after one that was told to stop", 1)
	run(ledger.RunFailed)
	want("after one that failed", 0)
}
