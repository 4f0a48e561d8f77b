package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// raise stores a finding on operations and gives it as it is listed.
func (w *world) raise(kind recon.FindingKind, about []recon.OperationID, effects ...recon.Effect) ledger.FindingRow {
	w.Helper()
	f := recon.Finding{Kind: kind, Certainty: recon.Proof, Source: source, Operations: about, Reason: "For the test.", Money: recon.Money{Minor: 4200, Currency: "EUR"}}
	for _, e := range effects {
		f.Effects = append(f.Effects, e.Ref())
	}
	w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{f}, Effects: effects})
	rows, err := w.led.Findings(w.Context(), ledger.FindingFilter{Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range rows {
		if r.Fingerprint() == f.Fingerprint() {
			return r
		}
	}
	w.Fatalf("the finding was not stored")
	return ledger.FindingRow{}
}

// act does what a person wants and demands that it is no error.
func (w *world) act(a ledger.PersonAction) ledger.PersonAnswer {
	w.Helper()
	answer, err := w.led.Person(w.Context(), a)
	if err != nil {
		w.Fatalf("%+v: %v", a, err)
	}
	return answer
}

func (w *world) want(a ledger.PersonAction, outcome ledger.PersonOutcome) ledger.PersonAnswer {
	w.Helper()
	answer := w.act(a)
	if answer.Outcome != outcome {
		w.Fatalf("%s: %s (%s %s), want %s", a.Verb, answer.Outcome, answer.Reason, answer.Next, outcome)
	}
	return answer
}

func TestAPersonSaysThatItDidNotHappen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	got := w.want(ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen, Reason: "asked the bank", Version: f.Version}, ledger.PersonDone)
	if got.OperationState != recon.Failed || got.State != recon.FindingSettled {
		t.Errorf("answer %+v", got)
	}
	s := w.story("op")
	if s.Operation.State != recon.Failed || s.Operation.ClosedAt.IsZero() || s.Operation.ErrorCode != "did_not_happen" {
		t.Errorf("the operation is %+v", s.Operation)
	}
	if e := s.Journal[len(s.Journal)-1]; e.Kind != recon.EntryPerson {
		t.Errorf("the last entry is %s: %s", e.Kind, e.Body)
	}
	w.verifyChains()
	_ = time.Now
}
