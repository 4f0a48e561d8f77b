package daemon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestTheDaemonStoresThePeopleAndWakesWhatWasPutOff(t *testing.T) {
	t.Parallel()
	c := parse(t, oneSource+`
people:
  - {name: ana, role: approver, slack: T1/U1}
  - {name: bob, role: approver, db_role: bob_db}
escalation: {approve_above: {eur: 50000}}
`, map[string]string{"KEY": "sk_live_" + "TESTONLY", "STRIPE_URL": "http://127.0.0.1:1"})
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	url := pgtest.URL(t, pgtest.SimulatedTime(at))
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	finding := recon.Finding{Kind: recon.FindBlind, Certainty: recon.Proof, Source: "stripe-main", Reason: "For the test."}
	if _, err := l.Record(t.Context(), ledger.Batch{Now: at, Findings: []recon.Finding{finding}}); err != nil {
		t.Fatal(err)
	}
	f := listed(t, l)
	snoozed, err := l.Person(t.Context(), ledger.PersonAction{Finding: f.ID, Verb: recon.Snooze, Until: at.Add(time.Hour)})
	if err != nil || snoozed.Outcome != ledger.PersonDone {
		t.Fatalf("%+v, %v", snoozed, err)
	}
	if err := l.SetSimulatedTime(t.Context(), at.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}

	r := start(t, c, url)
	r.await("/readyz", 200, "")
	p, err := l.People(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.People{People: []ledger.Person{{Name: "ana", Role: "approver", Slack: "T1/U1"}, {Name: "bob", Role: "approver", DBRole: "bob_db"}},
		ApproveAbove: map[string]int64{"EUR": 50000}}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("the ledger's people (-want +got):\n%s", d)
	}
	for deadline := time.Now().Add(20 * time.Second); listed(t, l).State != recon.FindingOpen; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("what was put off is still %s\n%s", listed(t, l).State, r.log)
		}
	}
}

func listed(t *testing.T, l *ledger.Ledger) ledger.FindingRow {
	t.Helper()
	rows, err := l.Findings(t.Context(), ledger.FindingFilter{Kinds: []recon.FindingKind{recon.FindBlind}})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d findings, %v", len(rows), err)
	}
	return rows[0]
}
