package reports

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What is told adds by currency and by kind, never across them, and says how much it leaves out.
func TestNewsAddByCurrencyAndKindAndNameTheGaps(t *testing.T) {
	t.Parallel()
	amount := func(count int, minor int64) Sum { return Sum{Count: count, Amount: &minor} }
	line := func(currency string, count int, minor int64, done int, doneMinor int64) OperationLine {
		return OperationLine{Source: "s", Action: "a", Currency: &currency, All: amount(count, minor), States: map[recon.State]Sum{recon.Succeeded: amount(done, doneMinor)}}
	}
	finding := func(kind recon.FindingKind, state recon.FindingState) NightlyFinding {
		f := NightlyFinding{}
		f.Kind, f.State = kind, state
		return f
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	n := &Nightly{
		Window: NightlyWindow{Name: "2026-03-01", Zone: "UTC"}, Totals: NightlyTotals{Operations: 7, Effects: 3}, Ended: true,
		Operations: []OperationLine{line("USD", 1, 10, 0, 0), line("EUR", 2, 300, 1, 100), line("EUR", 3, 50, 3, 50), {Source: "s", Action: "letter", All: Sum{Count: 1}}},
		Findings: []NightlyFinding{finding(recon.FindDuplicate, recon.FindingOpen), finding(recon.FindMissing, recon.FindingEnded),
			finding(recon.FindMissing, recon.FindingSnoozed), finding(recon.FindMissing, recon.FindingSettled)},
		Unseen: []NightlyGap{{Source: "s", From: at, Why: strings.Repeat("long ", 200)}},
	}
	for range 12 {
		n.NotAudited = append(n.NotAudited, NightlyGap{Source: "s", From: at, Why: "no finished audit covers it"})
	}
	d := NightlyNews(n, "/srv/page.html")
	if diff := cmp.Diff([]recon.DayMoney{{Currency: "EUR", Count: 5, Minor: 350, DoneCount: 4, DoneMinor: 150}, {Currency: "USD", Count: 1, Minor: 10}}, d.Money); diff != "" {
		t.Errorf("money (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]recon.DayFindings{{Kind: recon.FindDuplicate, Open: 1}, {Kind: recon.FindMissing, Open: 1, Over: 2}}, d.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if len(d.Gaps) != 10 || d.MoreGaps != 3 || d.Gaps[0] != "Not audited: s, since 2026-03-01 00:00:00 UTC: no finished audit covers it" {
		t.Errorf("%d gaps and %d more: %v", len(d.Gaps), d.MoreGaps, d.Gaps)
	}
	if d.Operations != 7 || d.Effects != 3 || d.Page != "/srv/page.html" || d.Verdict != n.verdict() {
		t.Errorf("%+v", d)
	}
	n.NotAudited = nil
	if g := NightlyNews(n, "").Gaps; len(g) != 1 || len([]rune(g[0])) > 320 {
		t.Errorf("a long reason: %q", g)
	}
}
