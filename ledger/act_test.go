package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// actingWorld has a clock that stands still and one action that may be repeated.
func actingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	w.apply(repeatable())
	return w
}

func repeatable() recon.Policy {
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class = "refund.create", source, "refund", recon.Irreversible
	p.Repeat, p.KeyLifetime, p.ResultFields = recon.RepeatSameKey, recon.Duration(24*time.Hour), []string{"id"}
	p.Accounts = []recon.Account{{Account: "acct_1", Mode: "live"}}
	return p
}

func (w *world) apply(policies ...recon.Policy) []recon.Policy {
	w.Helper()
	applied, err := w.led.ApplyPolicies(w.Context(), policies, t0)
	if err != nil {
		w.Fatal(err)
	}
	return applied
}

func (w *world) at(now time.Time) {
	w.Helper()
	if err := w.led.SetSimulatedTime(w.Context(), now); err != nil {
		w.Fatal(err)
	}
}

func intent(id string) ledger.OpenRequest {
	return ledger.OpenRequest{ID: recon.OperationID(id), Key: "k-" + id, Action: "refund.create", Target: "order:" + id,
		Parent: "ch_" + id, Amount: 4200, Currency: "EUR", Request: json.RawMessage(`{"charge":"ch_1"}`), Agent: "returns"}
}

func TestActingThroughTheLedgerIsActingThroughTheFunctions(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	ctx := t.Context()
	opened, err := w.led.OpenOperation(ctx, intent("op"))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "opened", ledger.OpenAnswer{OperationID: "op", Key: "k-op", State: recon.Pending, Verdict: "new",
		Already: ledger.Already{Succeeded: "0", Open: "0"}}, opened)
	claim, err := w.led.Claim(ctx, ledger.ClaimRequest{OperationID: "op", Holder: "w", Call: "c", LeaseSeconds: 20})
	if err != nil {
		t.Fatal(err)
	}
	if claim.Token == "" {
		t.Error("a claim without token")
	}
	until := t0.Add(20 * time.Second)
	diff(t, "claimed", ledger.ClaimAnswer{Claimed: true, OperationID: "op", Key: "k-op", Request: json.RawMessage(`{"charge": "ch_1"}`),
		Marker: ledger.Marker{Name: "operation_id", Value: "op"}, Token: claim.Token, Attempt: 1, LeaseUntil: until,
		SendBefore: until, SendWithinSeconds: 20, State: recon.InProgress, Verdict: "send"}, claim)
	finished, err := w.led.Finish(ctx, ledger.FinishRequest{OperationID: "op", Token: claim.Token, Class: recon.ClassSucceeded,
		EffectID: "re_1", Result: json.RawMessage(`{"id":"re_1","card":"4242"}`), RequestID: "req_1"})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "finished", ledger.FinishAnswer{State: recon.Succeeded, Verdict: "succeeded", Final: true, Applied: true}, finished)
	again, err := w.led.OpenOperation(ctx, intent("op"))
	if err != nil {
		t.Fatal(err)
	}
	if again.Verdict != "existing" || string(again.Result) != `{"id": "re_1"}` {
		t.Errorf("opened again: %+v, want the stored result", again)
	}
	var kinds []string
	for _, e := range w.story("op").Journal {
		kinds = append(kinds, string(e.Kind))
	}
	diff(t, "journal", []string{"opened", "attempt_started", "attempt_finished"}, kinds)
	w.verifyChains()
}

func TestB17_FiftyOpensThroughTheLedgerMakeOneOperation(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	verdicts := make([]string, 50)
	var wg sync.WaitGroup
	for i := range verdicts {
		wg.Go(func() {
			answer, err := w.led.OpenOperation(t.Context(), intent("wf10"))
			if err != nil {
				t.Error(err)
			}
			verdicts[i] = answer.Verdict
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, v := range verdicts {
		count[v]++
	}
	diff(t, "verdicts", map[string]int{"new": 1, "existing": 49}, count)
}

func TestInputThatTheLedgerRefusesIsSaidWithTheNextStep(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	for name, c := range map[string]struct {
		change func(*ledger.OpenRequest)
		says   string
	}{
		"a fraction":      {func(r *ledger.OpenRequest) { r.Request = json.RawMessage(`{"amount":10.5}`) }, "whole number"},
		"no request":      {func(r *ledger.OpenRequest) { r.Request = nil }, "Give what is sent"},
		"no JSON":         {func(r *ledger.OpenRequest) { r.Request = json.RawMessage(`{"a"`) }, "cannot be written"},
		"a negative":      {func(r *ledger.OpenRequest) { r.Amount = -1 }, "not above 0"},
		"an endless text": {func(r *ledger.OpenRequest) { r.Target = strings.Repeat("x", 1025) }, "at most 1024"},
	} {
		r := intent("op")
		c.change(&r)
		_, err := w.led.OpenOperation(t.Context(), r)
		var usage *ledger.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want a usage error that says %q", name, err, c.says)
		}
	}
	r := intent("op")
	r.Target = "a\x00b"
	_, err := w.led.OpenOperation(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "U+0000") || strings.Contains(err.Error(), "a\x00b") {
		t.Errorf("U+0000: %v", err)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations`); n != 0 {
		t.Errorf("%d operations were made of bad input", n)
	}
}

func TestActingWorksForARoleWithStricterTransactions(t *testing.T) {
	t.Parallel()
	w := actingWorld(t)
	w.exec(fmt.Sprintf(`ALTER DATABASE %q SET default_transaction_isolation = 'serializable'`, one[string](w, `SELECT current_database()`)))
	strict, err := ledger.Open(t.Context(), ledger.Options{URL: w.url})
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close()
	if answer, err := strict.OpenOperation(t.Context(), intent("op")); err != nil || answer.Verdict != "new" {
		t.Errorf("opened %+v, %v", answer, err)
	}
}

func TestARealDatabaseCannotBeToldTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var usage *ledger.UsageError
	if err := w.led.SetSimulatedTime(t.Context(), t0); !errors.As(err, &usage) {
		t.Errorf("told the time: %v, want a usage error", err)
	}
	s := newWorld(t, pgtest.SimulatedTime(t0))
	s.at(t0.Add(time.Hour))
	if now, err := s.led.Now(t.Context()); err != nil || !now.Equal(t0.Add(time.Hour)) {
		t.Errorf("it is %v, %v", now, err)
	}
}

func TestApplyPoliciesMakesAVersionOnlyOfWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DELETE FROM reconciler.policies`)
	other := repeatable()
	other.Action = "payout.send"
	versions := func(policies ...recon.Policy) map[string]int {
		t.Helper()
		got := map[string]int{}
		for _, p := range w.apply(policies...) {
			got[p.Action] = p.Version
		}
		return got
	}
	diff(t, "first", map[string]int{"refund.create": 1, "payout.send": 1}, versions(repeatable(), other))
	diff(t, "the same again, in another order", map[string]int{"refund.create": 1, "payout.send": 1}, versions(other, repeatable()))
	changed := repeatable()
	changed.OneOpen = true
	diff(t, "one changed", map[string]int{"refund.create": 2, "payout.send": 1}, versions(changed, other))
	diff(t, "one left out", map[string]int{"refund.create": 2}, versions(changed))

	policies, err := w.led.Policies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changed.Version = 2
	diff(t, "policies in force", []recon.Policy{changed}, policies)
	if answer, err := w.led.OpenOperation(t.Context(), ledger.OpenRequest{Action: "payout.send", Target: "t", Request: json.RawMessage(`{}`)}); err != nil || answer.Verdict != "rejected" {
		t.Errorf("opening an action that is no longer configured: %+v, %v", answer, err)
	}
	diff(t, "it comes back", map[string]int{"refund.create": 2, "payout.send": 2}, versions(changed, other))
	if n := one[int](w, `SELECT count(*) FROM reconciler.policies`); n != 4 {
		t.Errorf("%d versions are kept, want 4", n)
	}
}

func TestDaemonsThatStartTogetherApplyTheSamePolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DELETE FROM reconciler.policies`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			applied, err := w.led.ApplyPolicies(t.Context(), []recon.Policy{repeatable()}, t0)
			if err != nil || applied[0].Version != 1 {
				t.Errorf("%v, %v", applied, err)
			}
		})
	}
	wg.Wait()
	if n := one[int](w, `SELECT count(*) FROM reconciler.policies`); n != 1 {
		t.Errorf("%d versions of one policy", n)
	}
}

func TestPoliciesWithoutWhatIsNeededAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare := repeatable()
	bare.Source = ""
	for name, policies := range map[string][]recon.Policy{"no source": {bare}, "twice": {repeatable(), repeatable()}} {
		_, err := w.led.ApplyPolicies(t.Context(), policies, t0)
		var usage *ledger.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
}

func TestVerifyFindsEveryKindOfTampering(t *testing.T) {
	t.Parallel()
	const disabled = `ALTER TABLE reconciler.journal DISABLE TRIGGER USER; `
	for name, c := range map[string]struct {
		tamper string
		want   []ledger.BrokenChain
	}{
		"nothing": {`SELECT 1`, []ledger.BrokenChain{}},
		"a changed text": {disabled + `UPDATE reconciler.journal SET body = replace(body, 'w', 'v') WHERE operation_id = 'b' AND seq = 2`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 2, Reason: "its text is not the one that was hashed"}}},
		"a changed text with its hash": {disabled + `UPDATE reconciler.journal j SET body = '{"kind":"opened","at":"2026-11-02T10:00:00Z"}',
				hash = sha256('{"kind":"opened","at":"2026-11-02T10:00:00Z"}') WHERE operation_id = 'b' AND seq = 1`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 2, Reason: "its text is not the one that was hashed"}}},
		"a missing entry": {disabled + `DELETE FROM reconciler.journal WHERE operation_id = 'b' AND seq = 2`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 2, Reason: "the entry is missing"}}},
		"a missing last entry": {disabled + `DELETE FROM reconciler.journal WHERE operation_id = 'b' AND seq = 3`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 3, Reason: "the entry is missing"}}},
		"no entry at all": {disabled + `DELETE FROM reconciler.journal WHERE operation_id = 'b'`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 1, Reason: "the entry is missing"}}},
		"an entry more": {`INSERT INTO reconciler.journal SELECT j.tenant, j.operation_id, 4, j.kind, j.at, j.body,
				sha256(j.hash || convert_to(j.body, 'UTF8')) FROM reconciler.journal j WHERE operation_id = 'b' AND seq = 3`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 4, Reason: "the operation's row names another last entry"}}},
		"another kind": {disabled + `UPDATE reconciler.journal SET kind = 'person' WHERE operation_id = 'b' AND seq = 1`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 1, Reason: "its kind or time is not that of its text"}}},
		"another time": {disabled + `UPDATE reconciler.journal SET at = at + interval '1 us' WHERE operation_id = 'b' AND seq = 3`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 3, Reason: "its kind or time is not that of its text"}}},
		"another head": {`UPDATE reconciler.operations SET chain_head = sha256('x') WHERE operation_id = 'b'`,
			[]ledger.BrokenChain{{Operation: "b", Seq: 3, Reason: "the operation's row names another last entry"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := actingWorld(t)
			for _, id := range []string{"a", "b", "c"} {
				w.actOn(id)
			}
			w.exec(c.tamper)
			got, err := w.led.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Broken); diff != "" || got.Operations != 3 {
				t.Errorf("%d operations; broken (-want +got):\n%s", got.Operations, diff)
			}
			if got, err := w.led.Verify(t.Context(), "a", "c"); err != nil || len(got.Broken) != 0 || got.Operations != 2 || got.Entries != 6 {
				t.Errorf("the other two: %+v, %v", got, err)
			}
		})
	}
}

// actOn opens, claims and finishes.
func (w *world) actOn(id string) {
	w.Helper()
	if _, err := w.led.OpenOperation(w.Context(), intent(id)); err != nil {
		w.Fatal(err)
	}
	c, err := w.led.Claim(w.Context(), ledger.ClaimRequest{OperationID: recon.OperationID(id), Holder: "w"})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.led.Finish(w.Context(), ledger.FinishRequest{OperationID: recon.OperationID(id), Token: c.Token, Class: recon.ClassIndeterminate}); err != nil {
		w.Fatal(err)
	}
}

func TestVerifyOfAnOperationThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var missing *ledger.NotFoundError
	if _, err := w.led.Verify(t.Context(), "nobody"); !errors.As(err, &missing) {
		t.Errorf("%v, want not found", err)
	}
}

func TestAFinishThatClosesWhatPeopleWereToldOfIsLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		w := actingWorld(t)
		if _, err := w.led.OpenOperation(t.Context(), intent("op")); err != nil {
			t.Fatal(err)
		}
		claim, err := w.led.Claim(t.Context(), ledger.ClaimRequest{OperationID: "op", Holder: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		if told {
			w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{{Kind: recon.FindUnresolved, Certainty: recon.Proof,
				Source: source, Operations: []recon.OperationID{"op"}, Reason: "Nobody knows.", State: recon.FindingOpen}}})
		}
		_, err = w.led.Finish(t.Context(), ledger.FinishRequest{OperationID: "op", Token: claim.Token, Class: recon.ClassSucceeded, EffectID: "re_1"})
		if err != nil {
			t.Fatal(err)
		}
		if due := w.due(t0, 10); (len(due) == 1) != told {
			t.Errorf("told: %t; due at once: %d operations", told, len(due))
		}
	}
}
