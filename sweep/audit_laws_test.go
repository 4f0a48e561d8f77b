package sweep

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// month is a random pair of lists: what we meant and what is there.
type month struct {
	operations []recon.Operation
	effects    []recon.Effect
}

var auditAccounts = []recon.Account{{Account: "acct_1", Mode: "live"}, {Account: "acct_2", Mode: "live"}}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomMonth draws few names, so that identities meet, repeat and disagree.
func randomMonth(r *rand.Rand) month {
	var m month
	at := func() time.Time { return monday.Add(time.Duration(r.IntN(30*3600)-12*3600) * time.Second) }
	states := []recon.State{recon.Succeeded, recon.Succeeded, recon.Succeeded, recon.Unknown, recon.Failed, recon.Pending, recon.ManualReview}
	for n := range r.IntN(14) {
		op := recon.Operation{
			ID: recon.OperationID(fmt.Sprintf("op_%d", n)), Source: testSource, Action: "refund.create", State: pick(r, states...), CreatedAt: at(),
			Target: pick(r, "order:1", "order:2", "order:3"), Money: recon.Money{Minor: pick[int64](r, 100, 200), Currency: "EUR"},
			Key: fmt.Sprintf("k_%d", n), Parent: pick(r, "", "ch_1", "ch_2"), Account: pick(r, "acct_1", "acct_1", "acct_2"), Mode: "live",
		}
		if op.State != recon.Pending || r.IntN(2) == 0 {
			op.SentAt = op.CreatedAt.Add(time.Second)
		}
		if op.State == recon.Succeeded && r.IntN(3) > 0 {
			op.EffectID = fmt.Sprintf("re_%d", r.IntN(14))
		}
		if r.IntN(8) == 0 {
			op.Group = pick(r, "g_1", "g_2")
		}
		m.operations = append(m.operations, op)
	}
	for n := range r.IntN(16) {
		e := recon.Effect{
			ID: fmt.Sprintf("re_%d", n), Source: testSource, System: string(testSource), Kind: "refund", CreatedAt: at().Truncate(time.Second),
			Status: pick(r, recon.Completed, recon.Completed, recon.Completed, recon.InFlight, recon.EffectFailed, recon.Reversed),
			Money:  recon.Money{Minor: pick[int64](r, 100, 100, 200), Currency: "EUR"}, Parent: pick(r, "ch_1", "ch_2"), Target: pick(r, "", "order:1"),
			Account: pick(r, "acct_1", "acct_1", "acct_2"), Mode: "live",
		}
		name := r.IntN(14)
		switch r.IntN(6) {
		case 0, 1, 2:
			e.Reference = fmt.Sprintf("op_%d", name)
		case 3:
			e.Key = fmt.Sprintf("k_%d", name)
		case 4:
			e.Reference, e.Key = fmt.Sprintf("op_%d", name), fmt.Sprintf("k_%d", r.IntN(14))
		}
		if r.IntN(10) == 0 {
			e.Reference = pick(r, "g_1", "g_2")
		}
		if r.IntN(20) == 0 {
			e.Account, e.Mode = "acct_1", "test"
		}
		m.effects = append(m.effects, e)
	}
	// To an audit an account's list that is empty says something, to a comparison nothing.
	for _, a := range auditAccounts {
		m.effects = append(m.effects, recon.Effect{
			ID: "re_of_" + a.Account, Source: testSource, System: string(testSource), Kind: "refund", Status: recon.EffectFailed, CreatedAt: monday,
			Money: recon.Money{Minor: 1, Currency: "EUR"}, Account: a.Account, Mode: a.Mode,
		})
	}
	return m
}

// An audit of a ledger and of a provider says what a comparison of the same two lists
// says, whatever they hold.
func TestAnAuditSaysWhatAComparisonOfTheSameListsSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := randomMonth(rand.New(rand.NewPCG(seed, 7)))
			now := monday.Add(48 * time.Hour)
			window := recon.Window{From: monday.Add(-7 * time.Hour), To: monday.Add(13 * time.Hour)}
			for i, o := range m.operations { // where it does not list, an audit has not looked for the known effect
				if !window.Contains(o.CreatedAt) {
					m.operations[i].EffectID = ""
				}
			}
			source := &listed{name: testSource, effects: m.effects, page: 3, places: append(auditAccounts, recon.Account{Account: "acct_1", Mode: "test"})}
			source.sheet = recon.Sheet{
				System: string(testSource), Kinds: []string{"refund"}, Accounts: auditAccounts,
				Abilities: []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong}},
			}
			policy := policyFor(source, "refund.create", "refund")
			want := compareMonth(t, m, policy, window, now)
			if want.Operations == 0 {
				want.Unseen = nil // of a window without operations nothing can be missed
			}
			got := auditMonth(t, m, source, policy, window, now)
			want.Findings, got.Findings = known(want.Findings), known(got.Findings)
			if diff := cmp.Diff(said(AuditResult{CompareResult: want}), said(got)); diff != "" {
				t.Errorf("(-comparison +audit):\n%s\noperations:\n%s\neffects:\n%s", diff, operationLines(t, m), effectLines(t, m))
			}
		})
	}
}

// known leaves out what is only not known: an audit also decides, and says so of an
// operation whose only effects failed and that may have others.
func known(findings []CompareFinding) []CompareFinding {
	return slices.DeleteFunc(findings, func(f CompareFinding) bool { return f.Kind == recon.FindUnresolved })
}

func compareMonth(t *testing.T, m month, p recon.Policy, w recon.Window, now time.Time) CompareResult {
	t.Helper()
	var within month // what an audit's lists show of the provider
	within.operations = m.operations
	for _, e := range m.effects {
		if !e.CreatedAt.Before(w.From.Add(-overlap)) && e.CreatedAt.Before(w.To.Add(overlap)) {
			within.effects = append(within.effects, e)
		}
	}
	r, err := Compare(t.Context(), CompareOptions{
		Operations: strings.NewReader(operationLines(t, m)), Effects: strings.NewReader(effectLines(t, within)),
		Window: w, Now: now, Policies: map[string]recon.Policy{p.Action: p},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func auditMonth(t *testing.T, m month, s *listed, p recon.Policy, w recon.Window, now time.Time, more ...recon.Policy) AuditResult {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(now))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if _, err := l.ApplyPolicies(t.Context(), append(more, p), now); err != nil {
		t.Fatal(err)
	}
	r, err := l.Import(t.Context(), strings.NewReader(operationLines(t, m)), now)
	if err != nil || r.Refused > 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	a := &Audit{Sweep: &Sweep{Ledger: l, Source: s, Holder: "test/1", batch: 4}, Accounts: l, Policies: append(more, p)}
	got, err := a.Run(t.Context(), AuditOptions{Now: func() time.Time { return now }, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, got)
	return got
}

func operationLines(t *testing.T, m month) string {
	t.Helper()
	return lines(t, m.operations, recon.MarshalOperation)
}

func effectLines(t *testing.T, m month) string {
	t.Helper()
	return lines(t, m.effects, recon.MarshalEffect)
}

func lines[T any](t *testing.T, list []T, marshal func(T) ([]byte, error)) string {
	t.Helper()
	var b bytes.Buffer
	for _, v := range list {
		text, err := marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(bytes.TrimSpace(text), '\n'))
	}
	return b.String()
}
