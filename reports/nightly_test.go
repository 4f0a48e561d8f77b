package reports

import (
	"bytes"
	"encoding/csv"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const hostile = `<script>alert(1)</script>"'&=HYPERLINK("http://evil.example")` + "\u202e\x1b[31m\n"

func amountOf(n int64) *int64 { return &n }
func textOf(s string) *string { return &s }

// sampleNight is a report with something in each of its parts.
func sampleNight(t testing.TB) *Nightly {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, zone)
	to := from.AddDate(0, 0, 1)
	asOf := to.Add(3 * time.Hour).UTC()
	none := Sum{Amount: amountOf(0)}
	seconds := func(s float64) *float64 { return &s }
	classes := NightlyClasses{Operations: map[string]int{"matched": 40, "missing": 1, "unseen": 1, "conflict": 0}, Effects: map[string]int{"matched": 40, "orphan": 1}}
	n := &Nightly{
		Format: NightlyFormat, AsOf: asOf, Ended: true, Exponents: map[string]int{},
		Window: NightlyWindow{From: from, To: to, Zone: "Europe/Berlin", Name: "2026-03-01", Hours: 24},
		Totals: NightlyTotals{Operations: 42, Effects: 41},
		Audits: []NightlyAudit{{RunID: "run_1", Source: "stripe-main", From: from.Add(-time.Hour), To: to.Add(-2 * time.Hour), FinishedAt: asOf,
			Operations: 42, Effects: 41, Classes: classes}},
		NotAudited: []NightlyGap{{Source: "stripe-main", From: to.Add(-2 * time.Hour), To: &to, Why: "no finished audit covers it"}},
		Unseen:     []NightlyGap{{Source: "stripe-main", From: from, To: &to, Why: "refund of account acct_2, mode live: it did not answer"}},
		Failed:     []NightlyGap{},
		Down:       []NightlyGap{{Source: "bank-giro", From: from.Add(20 * time.Hour), Why: "the provider could not be asked"}},
		Operations: []OperationLine{
			{Source: "postmark", Action: "email.send", All: Sum{Count: 12}, States: map[recon.State]Sum{recon.Succeeded: {Count: 12}}},
			{Source: "stripe-main", Action: "refund.create", Currency: textOf("EUR"), All: Sum{30, amountOf(1_234_500)}, States: map[recon.State]Sum{
				recon.Succeeded: {26, amountOf(1_000_000)}, recon.Failed: {1, amountOf(4_500)}, recon.Unknown: {2, amountOf(200_000)},
				recon.ManualReview: {1, amountOf(30_000)}, recon.Pending: none, recon.InProgress: none}},
		},
		Effects: []EffectLine{
			{Source: "stripe-main", Kind: "charge", Currency: textOf("EUR"), All: Sum{1, amountOf(5_200)}, Owned: none, Unowned: Sum{1, amountOf(5_200)},
				Statuses: map[recon.EffectStatus]Sum{recon.Completed: {1, amountOf(5_200)}}},
			{Source: "stripe-main", Kind: "refund", Currency: textOf("EUR"), All: Sum{40, amountOf(1_000_900)}, Owned: Sum{39, amountOf(1_000_000)}, Unowned: Sum{1, amountOf(900)},
				Statuses: map[recon.EffectStatus]Sum{recon.Completed: {40, amountOf(1_000_900)}}},
		},
		Fees: []FeeLine{{Source: "stripe-main", Kind: "charge", Currency: "EUR", Known: Sum{1, amountOf(-186)}},
			{Source: "stripe-main", Kind: "refund", Currency: "EUR", Known: none, NotKnown: 40}},
		Open: []OpenLine{
			{Source: "stripe-main", Action: "refund.create", State: recon.ManualReview, Count: 1, Buckets: []int{0, 0, 0, 1, 0, 0, 0}},
			{Source: "stripe-main", Action: "refund.create", State: recon.Unknown, Count: 2, Buckets: []int{1, 0, 0, 0, 0, 0, 1}}},
		Truth:    NightlyTruth{Closed: 3, ByPeople: 1, Median: seconds(95), P99: seconds(7500), Longest: seconds(7500)},
		Policies: []NightlyPolicy{{Action: "refund.create", Version: 1, Operations: 3}, {Action: "refund.create", Version: 2, Active: true, Operations: 27}},
		Chains:   NightlyChains{Operations: 30, Digest: strings.Repeat("ab", 32)},
		Stories:  []StoryPage{},
	}
	n.Classes = SumClasses(n.Audits)
	op := recon.Operation{ID: "op_missing", Source: "stripe-main", Action: "refund.create", Target: hostile, Parent: "ch_1", Money: recon.Money{Minor: 30_000, Currency: "EUR"},
		State: recon.ManualReview, CreatedAt: from.Add(8 * time.Hour), Account: "acct_1", Mode: "live", SentAt: from.Add(8 * time.Hour), UnknownSince: from.Add(8 * time.Hour)}
	missing := FindingRow{Finding: recon.Finding{ID: "fnd_1", Kind: recon.FindMissing, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{op.ID},
		Reason: "The refund for " + hostile + " is not there.", Money: op.Money, State: recon.FindingOpen, OpenedAt: from.Add(9 * time.Hour), Version: 1}, Assignee: "ana"}
	stray := recon.Effect{ID: "re_" + strings.Repeat("x", 90), Source: "stripe-main", Kind: "refund", Status: recon.Completed, Money: recon.Money{Minor: 900, Currency: "EUR"},
		CreatedAt: from.Add(5 * time.Hour), Account: "acct_1", Mode: "live"}
	orphan := FindingRow{Finding: recon.Finding{ID: "fnd_2", Kind: recon.FindOrphan, Certainty: recon.Proof, Source: "stripe-main", Effects: []recon.EffectRef{stray.Ref()},
		Reason: "=No operation explains it.", Money: stray.Money, State: recon.FindingSettled, Ending: "ana accepted it", OpenedAt: from.Add(-time.Hour), EndedAt: from.Add(time.Hour), Version: 2},
		SettledAt: from.Add(time.Hour)}
	n.Findings = []NightlyFinding{NewFinding(Sides{FindingRow: missing, Ours: []recon.Operation{op}}, true, asOf), NewFinding(Sides{FindingRow: orphan, Theirs: []recon.Effect{stray}}, false, asOf)}
	n.Stories = []StoryPage{NewStoryPage(recon.Story{Operation: op, Policy: recon.Policy{Effect: "refund"}, Findings: []recon.Finding{missing.Finding},
		Journal: []recon.Entry{entry(t, 1, "07:00:00", recon.EntryOpened, `{"by":"worker-1"}`),
			entry(t, 2, "07:00:01", recon.EntryDecision, `{"rule":"missing","reason":"three complete looks found nothing","from":"unknown","to":"manual_review","look_ids":["l1"],"findings":[{"kind":"missing"}]}`)},
		Looks: []recon.Look{{ID: "l1", Source: "stripe-main", Account: "acct_1", Mode: "live", Method: recon.ByReference, Outcome: recon.Absent, Complete: true, Kind: "refund", Reference: "op_missing", At: at(t, "07:00:00")}},
	}, asOf, zone)}
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	return n
}

// The same document gives the same bytes in every form, also after it was kept.
func TestAReportIsRenderedTheSameTwice(t *testing.T) {
	t.Parallel()
	n := sampleNight(t)
	first := render(t, n)
	var document bytes.Buffer
	if err := NightlyJSON(&document, n); err != nil {
		t.Fatal(err)
	}
	kept, err := ReadNightly(document.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, render(t, kept)); diff != "" {
		t.Errorf("rendered again after it was kept:\n%s", diff)
	}
	for _, name := range []string{"report-2026-03-01.json", "report-2026-03-01.txt", "report-2026-03-01-totals.csv", "report-2026-03-01-findings.csv"} {
		golden(t, strings.Replace(name, "report-2026-03-01", "nightly", 1), first[name])
	}
}

func render(t *testing.T, n *Nightly) map[string][]byte {
	t.Helper()
	files, err := NightlyFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		all[f.Name] = f.Data
	}
	return all
}

// The page needs nothing besides itself, runs nothing, and shows text from outside as text.
func TestAReportsPagesAreSelfContained(t *testing.T) {
	t.Parallel()
	pages := 0
	files := render(t, sampleNight(t))
	for name, data := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		pages++
		page := string(data)
		for _, bad := range []string{"<script", "javascript:", "@import", "url(", "ZgotmplZ", "\u202e", "\x1b"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %s", name, bad)
			}
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			file, _, _ := strings.Cut(m[1], "#")
			if _, ok := files[file]; !ok && file != "" && file != "data:," {
				t.Errorf("%s links %q, which is no file of the report", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`href="([^"#]*)#([^"]*)"`).FindAllStringSubmatch(page, -1) {
			target := page
			if m[1] != "" {
				target = string(files[m[1]])
			}
			if !strings.Contains(target, `id="`+m[2]+`"`) {
				t.Errorf("%s links the place %s of %s, which is not there", name, m[2], m[1])
			}
		}
		if !strings.Contains(page, "default-src &#39;none&#39;") && !strings.Contains(page, "default-src 'none'") {
			t.Errorf("%s does not forbid requests", name)
		}
	}
	if pages != 2 {
		t.Errorf("%d pages, want the report and one story", pages)
	}
}

// A spreadsheet takes no text from outside for a formula, and numbers stay numbers.
func TestAReportsCSVCarriesNoFormula(t *testing.T) {
	t.Parallel()
	files := render(t, sampleNight(t))
	minus := false
	for _, name := range []string{"report-2026-03-01-totals.csv", "report-2026-03-01-findings.csv"} {
		rows, err := csv.NewReader(bytes.NewReader(files[name])).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(files[name], "\x1b\u202e") {
			t.Errorf("%s holds what cannot be seen", name)
		}
		number := regexp.MustCompile(`^-?\d+(\.\d+)?$`)
		for _, row := range rows {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !number.MatchString(cell) {
					t.Errorf("%s: the cell %q is a formula", name, cell)
				}
				minus = minus || cell == "-1.86"
			}
		}
	}
	if !minus {
		t.Error("a fee that was given back is not the number -1.86")
	}
}

// A report never says that all is well when nobody looked.
func TestAReportSaysWhatItStandsOn(t *testing.T) {
	t.Parallel()
	calm := func(change func(*Nightly)) *Nightly {
		n := sampleNight(t)
		n.Findings, n.NotAudited, n.Unseen = nil, nil, nil
		change(n)
		return n
	}
	for name, tt := range map[string]struct {
		n    *Nightly
		want Standing
	}{
		"calm":        {calm(func(*Nightly) {}), StandAccounted},
		"finding":     {sampleNight(t), StandFindings},
		"no audit":    {calm(func(n *Nightly) { n.Audits, n.Classes = nil, nil }), StandNotAudited},
		"part":        {calm(func(n *Nightly) { n.NotAudited = []NightlyGap{{Source: "s"}} }), StandNotAudited},
		"unseen":      {calm(func(n *Nightly) { n.Unseen = []NightlyGap{{Source: "s"}} }), StandUnseen},
		"not ended":   {calm(func(n *Nightly) { n.Ended = false }), StandNotEnded},
		"all settled": {calm(func(n *Nightly) { n.Findings = sampleNight(t).Findings[1:] }), StandAccounted},
	} {
		if got := tt.n.Standing(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		calmly := strings.Contains(tt.n.verdict(), "accounted for")
		if calmly != (tt.want == StandAccounted) {
			t.Errorf("%s says %q", name, tt.n.verdict())
		}
		if !tt.n.Ended && !strings.Contains(tt.n.ending(), "had not ended") {
			t.Errorf("%s does not say that there is more to come", name)
		}
	}
}

// Whatever single number is off by one, the report is not written.
func TestTotalsThatDoNotAddUpAreRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := sampleNight(t)
		by := rapid.SampledFrom([]int{-1, 1}).Draw(r, "by")
		line := &n.Operations[1]
		broken := rapid.SampledFrom([]func(){
			func() { n.Totals.Operations += by },
			func() { n.Totals.Effects += by },
			func() { s := line.States[recon.Failed]; s.Count += by; line.States[recon.Failed] = s },
			func() { line.All.Amount = amountOf(*line.All.Amount + int64(by)) },
			func() { line.All.Amount = nil },
			func() { n.Operations[0].All.Amount = amountOf(0) },
			func() { n.Effects[1].Owned.Count += by },
			func() { n.Effects[1].Unowned.Amount = amountOf(900 + int64(by)) },
			func() { n.Audits[0].Effects += by },
			func() { n.Audits[0].Classes.Operations["matched"] += by },
			func() { n.Classes.Effects["orphan"] += by },
			func() { n.Open[0].Buckets[2] += by },
		}).Draw(r, "broken")
		broken()
		var unequal *UnequalError
		if err := n.Check(); !errors.As(err, &unequal) || !strings.Contains(err.Error(), "nothing was written") {
			r.Fatalf("got %v", err)
		}
	})
}

// Windows of one source that overlap are not added; those of several sources are.
func TestClassesOfOverlappingAuditsAreNotAdded(t *testing.T) {
	t.Parallel()
	a := sampleNight(t).Audits[0]
	b := a
	b.From, b.To = a.To.Add(-time.Minute), a.To.Add(time.Hour)
	if SumClasses([]NightlyAudit{a, b}) != nil {
		t.Error("overlapping windows were added")
	}
	b.From = a.To
	if sum := SumClasses([]NightlyAudit{a, b}); sum == nil || sum.Operations["matched"] != 80 {
		t.Errorf("windows side by side: %+v", sum)
	}
	b = a
	b.Source = "bank-giro"
	if sum := SumClasses([]NightlyAudit{a, b}); sum == nil || sum.Effects["orphan"] != 2 {
		t.Errorf("two sources: %+v", sum)
	}
	if SumClasses(nil) != nil {
		t.Error("no audit has classes")
	}
}

// A payment with two refunds counts once, and what was refunded is its own line.
func TestB108_AReportCountsAPaymentOnceBesideItsRefunds(t *testing.T) {
	t.Parallel()
	page := string(render(t, sampleNight(t))["report-2026-03-01-totals.csv"])
	if strings.Count(page, "effects,stripe-main,charge,EUR,completed,1,5200,52.00\n") != 1 {
		t.Errorf("the charge of 52.00 does not count once:\n%s", page)
	}
}

// A fee that nobody told is not known; one that was given back is negative; neither is 0.
func TestB66_AReportShowsAFeeThatIsNotKnownAsNotKnown(t *testing.T) {
	t.Parallel()
	files := render(t, sampleNight(t))
	for name, want := range map[string][]string{
		"report-2026-03-01.txt":        {"Of 40 more effects that were done the sources told no fee.", "-1.86 EUR"},
		"report-2026-03-01.html":       {"Of 40 more effects that were done the sources told no fee.", "-1.86 EUR"},
		"report-2026-03-01-totals.csv": {"fees,stripe-main,refund,EUR,not_known,40,,\n", "fees,stripe-main,charge,EUR,known,1,-186,-1.86\n"},
	} {
		for _, w := range want {
			if !strings.Contains(string(files[name]), w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
	}
}

// A sum that is known to be 0 has the decimals of its currency, as every other one.
func TestAKnownSumOfNothingHasItsDecimals(t *testing.T) {
	t.Parallel()
	n := sampleNight(t)
	n.Fees = nil
	for _, currency := range []string{"EUR", "ISK", "JPY", "KWD"} {
		n.Fees = append(n.Fees, FeeLine{Source: "stripe-main", Kind: "charge", Currency: currency, Known: Sum{1, amountOf(0)}})
	}
	n.Exponents = map[string]int{"ISK": 2}
	files := render(t, n)
	for currency, want := range map[string]string{"EUR": "0.00", "ISK": "0.00", "JPY": "0", "KWD": "0.000"} {
		for name, line := range map[string]string{
			"report-2026-03-01-totals.csv": "fees,stripe-main,charge," + currency + ",known,1,0," + want + "\n",
			"report-2026-03-01.txt":        " " + want + " " + currency + " ",
			"report-2026-03-01.html":       ">" + want + " " + currency + "<",
		} {
			if !strings.Contains(string(files[name]), line) {
				t.Errorf("%s does not hold %q:\n%s", name, line, files[name])
			}
		}
	}
}

// What waits for a person stands first, then what is open from before, then what is over.
func TestFindingsThatWaitStandFirst(t *testing.T) {
	t.Parallel()
	dear := &money{Amount: 1_000_000, Currency: "EUR"}
	finding := func(id string, s recon.FindingState, inRange bool) NightlyFinding {
		return NightlyFinding{listedFinding: listedFinding{ID: id, State: s, Kind: recon.FindMissing, Money: dear}, InRange: inRange}
	}
	list := []NightlyFinding{
		finding("over", recon.FindingEnded, true), finding("before", recon.FindingSnoozed, false), finding("settled", recon.FindingSettled, true), finding("waits", recon.FindingOpen, true),
	}
	list[3].Money = nil // however dear the others are
	SortFindings(list)
	var got []string
	for _, f := range list {
		got = append(got, f.ID)
	}
	if got[0] != "waits" || got[1] != "before" {
		t.Errorf("order %v", got)
	}
	n := Nightly{Findings: list}
	if want := "4 findings, 2 of them over: 4 missing"; n.findingsText() != want {
		t.Errorf("%q, want %q", n.findingsText(), want)
	}
}
