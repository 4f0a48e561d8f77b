package sweep

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// auditor is an audit of the stand's source.
func (s *stand) auditor() *Audit {
	s.Helper()
	return &Audit{Sweep: s.sweep, Accounts: s.ledger, Policies: []recon.Policy{s.policy}}
}

// audit accounts once and demands that it goes well and that the sums are the totals.
func (s *stand) audit(w recon.Window) AuditResult {
	s.Helper()
	r, err := s.auditor().Run(s.Context(), AuditOptions{Now: s.now, Window: w})
	if err != nil {
		s.Fatalf("audit: %v", err)
	}
	checkSums(s.T, r)
	return r
}

func checkSums(t *testing.T, r AuditResult) {
	t.Helper()
	operations, effects := 0, 0
	for _, n := range r.Classes.Operations {
		operations += n
	}
	for _, n := range r.Classes.Effects {
		effects += n
	}
	if operations != r.Operations || effects != r.Effects {
		t.Errorf("the classes add up to %d and %d, the totals are %d and %d", operations, effects, r.Operations, r.Effects)
	}
}

// wantClasses holds the classes that are not 0.
func wantClasses(t *testing.T, r AuditResult, operations, effects map[rules.Class]int) {
	t.Helper()
	for _, k := range rules.OperationClasses {
		if got, want := r.Classes.Operations[k], operations[k]; got != want {
			t.Errorf("%d operations are %s, want %d", got, k, want)
		}
	}
	for _, k := range rules.EffectClasses {
		if got, want := r.Classes.Effects[k], effects[k]; got != want {
			t.Errorf("%d effects are %s, want %d", got, k, want)
		}
	}
}
