package migrations_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestClaimGivesOneCallerTheRightToSend(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(object{"key": "k"}).text("operation_id")
	a.advance(time.Minute)
	got := a.claim(id, object{"call": "c", "lease_seconds": 30})
	want := object{"claimed": true, "operation_id": id, "key": "k",
		"request": map[string]any{"charge": "ch_A", "amount": 4200.0},
		"marker":  map[string]any{"name": "op_id", "value": id}, "token": got["token"], "attempt": 1.0,
		"lease_until": "2026-03-01T08:01:30.000000Z", "send_before": "2026-03-01T08:01:30.000000Z",
		"send_within_seconds": 30.0, "in_doubt": false, "state": "in_progress", "verdict": "send", "final": false}
	if diff := cmp.Diff(want, got); diff != "" || len(got.text("token")) < 32 {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	for column, want := range map[string]string{
		"sent_at": "2026-03-01 08:01:00+00", "key_expires_at": "2026-03-02 08:01:00+00", "attempts": "1",
		"lease_holder": "worker", "version": "2", "call_attempts": "1",
	} {
		if got := a.row(id, column); got != want {
			t.Errorf("%s is %s, want %s", column, got, want)
		}
	}
	if got, want := a.nextCheck(id), a.now().Add(time.Minute); !got.Equal(want) {
		t.Errorf("next check at %v, want %v: the lease's end and check_after", got, want)
	}
	second := a.claim(id, object{"holder": "other"})
	if second["claimed"] != false || second["verdict"] != "unknown_reconciliation_required" || second["final"] != false ||
		second["token"] != nil || second["request"] != nil || second["retry_after_seconds"] != 30.0 || second.text("note") == "" {
		t.Errorf("a second claim: %v", second)
	}
	a.checkChains()
}

func TestClaimCutsTheLeaseAndSendsBeforeTheKeyExpires(t *testing.T) {
	t.Parallel()
	short := policy()
	short.KeyLifetime, short.KeyMargin = recon.Duration(31*time.Minute), recon.Duration(30*time.Minute+30*time.Second)
	long := policy()
	long.LeaseMax = recon.Duration(time.Hour)
	for name, c := range map[string]struct {
		policy             recon.Policy
		wish               any
		lease, sendBefore_ time.Duration
	}{
		"the policy's longest without a wish":  {policy(), nil, time.Minute, time.Minute},
		"a shorter wish":                       {policy(), 5, 5 * time.Second, 5 * time.Second},
		"a longer wish is cut":                 {policy(), 3600, time.Minute, time.Minute},
		"five minutes at most in any policy":   {long, nil, 5 * time.Minute, 5 * time.Minute},
		"the key's end comes before the lease": {short, nil, time.Minute, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			a.policy(c.policy)
			got := a.claim(a.open(nil).text("operation_id"), object{"lease_seconds": c.wish})
			want := [2]string{stamp(start.Add(c.lease)), stamp(start.Add(c.sendBefore_))}
			if got := [2]string{got.text("lease_until"), got.text("send_before")}; got != want {
				t.Errorf("lease_until and send_before %v, want %v", got, want)
			}
		})
	}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }

// TestFinishLeadsToTheStateOfTheTable walks the contract's table of classes.
func TestFinishLeadsToTheStateOfTheTable(t *testing.T) {
	t.Parallel()
	effect := object{"effect_id": "re_1"}
	rows := []struct {
		class          string
		more           object
		first, doubted recon.State
		answers        recon.State // doubted, where a repeat answers for the key
		counted        string      // as which class it is kept
	}{
		{"succeeded", effect, "succeeded", "succeeded", "succeeded", "succeeded"},
		{"succeeded", nil, "unknown", "unknown", "unknown", "indeterminate"},
		{"accepted", effect, "unknown", "unknown", "unknown", "accepted"},
		{"accepted", nil, "unknown", "unknown", "unknown", "indeterminate"},
		{"refused", nil, "failed", "unknown", "failed", "refused"},
		{"not_sent", nil, "pending", "unknown", "unknown", "not_sent"},
		{"stored_error", nil, "unknown", "unknown", "unknown", "stored_error"},
		{"indeterminate", nil, "unknown", "unknown", "unknown", "indeterminate"},
	}
	verdicts := map[recon.State]object{
		"succeeded": {"verdict": "succeeded", "final": true},
		"failed":    {"verdict": "failed_safe_to_retry", "final": true},
		"pending":   {"verdict": "failed_safe_to_retry", "final": false},
		"unknown":   {"verdict": "unknown_reconciliation_required", "final": false},
	}
	for _, row := range rows {
		for situation, c := range map[string]struct {
			doubted, answers bool
			want             recon.State
		}{
			"first attempt":                     {false, false, row.first},
			"after one in doubt":                {true, false, row.doubted},
			"after one in doubt, answering key": {true, true, row.answers},
		} {
			t.Run(fmt.Sprintf("%s %v %s", row.class, row.more != nil, situation), func(t *testing.T) {
				t.Parallel()
				a := newActor(t)
				p := policy()
				p.RepeatAnswer = c.answers
				a.policy(p)
				id := a.open(nil).text("operation_id")
				if c.doubted {
					a.attempt(id, "indeterminate", nil)
					a.advance(time.Minute)
				}
				got := a.attempt(id, row.class, row.more)
				delete(got, "retry_after_seconds")
				delete(got, "note")
				want := verdicts[c.want].with(object{"state": string(c.want), "applied": true})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				if got := a.row(id, "last_class"); got != row.counted {
					t.Errorf("kept as %s, want %s", got, row.counted)
				}
				a.checkRow(id, c.want)
				a.checkChains()
			})
		}
	}
}

// checkRow holds what must be so in any row of that state.
func (a actor) checkRow(id string, state recon.State) {
	a.t.Helper()
	var closed bool
	must(a.t, a.pool.QueryRow(a.t.Context(), `SELECT closed FROM reconciler.checks
		WHERE tenant = 'default' AND operation_id = $1`, id).Scan(&closed))
	next := a.nextCheck(id)
	switch {
	case !state.Open():
		if from := a.now().Add(19 * time.Hour); !closed || next.Before(from) || next.After(from.Add(10*time.Hour)) {
			a.t.Errorf("closed: %v, next check %v: want the first rung of re-verification", closed, next)
		}
		if a.row(id, "closed_at") == "null" || a.row(id, "slot") != "null" {
			a.t.Errorf("a closed operation without closed_at, or with a slot")
		}
	case state == recon.Unknown:
		if want := a.now().Add(30 * time.Second); closed || !next.Equal(want) {
			a.t.Errorf("closed: %v, next check %v, want %v", closed, next, want)
		}
		if a.row(id, "unknown_since") == "null" {
			a.t.Error("unknown since never")
		}
	case state == recon.Pending:
		if want := start.Add(15 * time.Minute); closed || !next.Equal(want) {
			a.t.Errorf("closed: %v, next check %v, want %v", closed, next, want)
		}
		for _, column := range []string{"sent_at", "key_expires_at", "unknown_since"} {
			if got := a.row(id, column); got != "null" {
				a.t.Errorf("nothing was sent, but %s is %s", column, got)
			}
		}
	}
	if a.row(id, "lease_token") != "null" {
		a.t.Error("the token outlives the attempt")
	}
}

func TestB29_AWorkerThatWakesAfterItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	first := a.claim(id, object{"holder": "A", "lease_seconds": 30})
	a.advance(29 * time.Second)
	if got := a.claim(id, object{"holder": "B"}); got["claimed"] != false {
		t.Fatalf("before the lease's end: %v, want no claim", got)
	}
	a.advance(2 * time.Second)
	second := a.claim(id, object{"holder": "B", "lease_seconds": 30})
	if second["claimed"] != true || second["attempt"] != 2.0 || second["token"] == first["token"] || second["key"] != first["key"] {
		t.Fatalf("after the lease's end: %v, want a second attempt under the same key", second)
	}
	late := a.finish(id, first.text("token"), "refused", object{"error_code": "card_declined"})
	if late["applied"] != false || late["state"] != "in_progress" || late["verdict"] != "unknown_reconciliation_required" {
		t.Errorf("A's late answer while B works: %v", late)
	}
	if got := a.nextCheck(id); !got.Equal(a.now()) {
		t.Errorf("next check %v, want now", got)
	}
	a.finish(id, second.text("token"), "succeeded", object{"effect_id": "re_1"})
	version := a.row(id, "state")
	late = a.finish(id, first.text("token"), "refused", object{"error_code": "card_declined"})
	if late["applied"] != false || late["state"] != "succeeded" || late["verdict"] != "succeeded" {
		t.Errorf("A's late answer after B closed it: %v", late)
	}
	if got := a.row(id, "state"); got != version || a.row(id, "error_code") != "null" || a.row(id, "effect_id") != "re_1" {
		t.Errorf("the late answer changed the row: %s", got)
	}
	var kept int
	must(t, a.pool.QueryRow(t.Context(), `SELECT count(*) FROM reconciler.journal
		WHERE operation_id = $1 AND kind = 'attempt_finished' AND body::jsonb ->> 'applied' = 'false'
			AND body::jsonb ->> 'error_code' = 'card_declined'`, id).Scan(&kept))
	if kept != 2 {
		t.Errorf("%d late answers are kept as evidence, want 2", kept)
	}
	a.checkChains()
}

func TestAFinishAfterTheLeaseIsStaleAlsoWhenNobodyNoticedItsEnd(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{time.Minute, time.Hour} {
		a := newActor(t)
		a.policy(policy())
		id := a.open(nil).text("operation_id")
		c := a.claim(id, nil)
		a.advance(age)
		got := a.finish(id, c.text("token"), "succeeded", object{"effect_id": "re_1"})
		if got["applied"] != false || a.row(id, "state") != "in_progress" || a.row(id, "effect_id") != "null" {
			t.Errorf("a finish %v after the claim: %v, want it stale", age, got)
		}
	}
}

func TestAnyTextIsAStaleTokenAndNeverAnError(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	c := a.claim(id, nil)
	for _, token := range []string{"", "x", "null", strings.Repeat("9", 5000), c.text("token") + " ", strings.ToUpper(c.text("token")) + "x", "'; DROP"} {
		if got := a.finish(id, token, "succeeded", object{"effect_id": "re_9"}); got["applied"] != false {
			t.Errorf("token %q: %v, want stale", token, got)
		}
	}
	if got := a.finish(id, c.text("token"), "succeeded", object{"effect_id": "re_1"}); got["applied"] != true {
		t.Errorf("the true token after all the others: %v", got)
	}
	if got := a.finish(id, c.text("token"), "succeeded", object{"effect_id": "re_1"}); got["applied"] != false || got["verdict"] != "succeeded" {
		t.Errorf("the true token again: %v, want the state and nothing applied", got)
	}
}

func TestB41_SameKeyOtherParametersFailsWithItsCauseAndTakesNoEffect(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	first := a.open(object{"key": "k-300", "amount": 1000})
	a.attempt(first.text("operation_id"), "succeeded", object{"effect_id": "re_1"})
	// In this ledger the key is refused before anything is sent.
	if got := a.open(object{"key": "k-300", "amount": 1200}); got["verdict"] != "conflict" {
		t.Errorf("the key with another amount: %v, want conflict", got)
	}
	// Elsewhere the provider refuses: this call had no effect.
	other := a.open(object{"amount": 1200}).text("operation_id")
	got := a.attempt(other, "refused", object{"error_code": "idempotency_error"})
	if got["state"] != "failed" || a.row(other, "error_code") != "idempotency_error" || a.row(other, "effect_id") != "null" {
		t.Errorf("the provider's refusal: %v, want failed with its cause", got)
	}
}

func TestB42_KeyInUseIsUnknown(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	if got := a.attempt(id, "indeterminate", nil); got["state"] != "unknown" || got["retry_after_seconds"] != 1.0 {
		t.Errorf("the time-out: %v, want unknown and a repeat after the back-off", got)
	}
	if got := a.claim(id, nil); got["claimed"] != false || got["retry_after_seconds"] != 1.0 {
		t.Errorf("a claim before the back-off is over: %v", got)
	}
	a.advance(time.Second)
	got := a.attempt(id, "indeterminate", object{"error_code": "idempotency_key_in_use", "request_id": "req_2"})
	if got["state"] != "unknown" || got["verdict"] != "unknown_reconciliation_required" || got["final"] != false {
		t.Errorf("409 in use: %v, want unknown", got)
	}
	if !a.nextCheck(id).Equal(a.now().Add(30 * time.Second)) {
		t.Errorf("next check %v", a.nextCheck(id))
	}
	if got := a.row(id, "unknown_since"); got != "2026-03-01 08:00:00+00" {
		t.Errorf("unknown since %s: a repeat does not make the doubt younger", got)
	}
}

func TestB43_ARepeatNearOrPastTheKeysLifetimeIsRefused(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy()) // 24 h, margin 30 m, lease 60 s
	id := a.open(object{"key": "k-310"}).text("operation_id")
	a.attempt(id, "indeterminate", nil)
	last := 24*time.Hour - 30*time.Minute - time.Minute
	a.advance(last)
	if got := a.claim(id, nil); got["claimed"] != false || !strings.Contains(got.text("reason"), "key lifetime") {
		t.Errorf("a lease that would end at the margin: %v, want refusal", got)
	}
	if got := a.claim(id, object{"lease_seconds": 59}); got["claimed"] != true {
		t.Errorf("a lease that ends before the margin: %v, want a claim", got)
	} else {
		a.finish(id, got.text("token"), "indeterminate", nil)
	}
	a.advance(25*time.Hour - last)
	got := a.claim(id, nil)
	if got["claimed"] != false || got["verdict"] != "unknown_reconciliation_required" || !strings.Contains(got.text("reason"), "key lifetime") {
		t.Errorf("25 hours later: %v, want a look first", got)
	}
	if got := a.call("claim_operation", object{"action": "refund.create", "holder": "w"}); got["claimed"] != false {
		t.Errorf("by action: %v", got)
	}
}

func TestAProviderWithoutKeysIsNeverAskedTwice(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.KeyLifetime = 0
	a.policy(p)
	id := a.open(nil).text("operation_id")
	a.attempt(id, "indeterminate", nil)
	a.advance(time.Hour)
	if got := a.claim(id, nil); got["claimed"] != false || a.row(id, "key_expires_at") != "null" {
		t.Errorf("a repeat without keys: %v", got)
	}
}

func TestB45_WhatWasNeverSentStaysPendingWithoutSentAt(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	a.advance(72 * time.Hour)
	if a.row(id, "state") != "pending" || a.row(id, "sent_at") != "null" || a.nextCheck(id).After(a.now()) {
		t.Error("an operation that nobody claimed must be due, pending and not sent")
	}
	got := a.attempt(id, "not_sent", object{"error_code": "validation"})
	if got["state"] != "pending" || got["verdict"] != "failed_safe_to_retry" || got["final"] != false || a.row(id, "sent_at") != "null" {
		t.Errorf("stopped before the call: %v, want pending and not sent", got)
	}
}

func TestAttemptsAreLimitedPerCallAndPerOperation(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	try := func(call any) object {
		a.advance(2 * time.Minute)
		got := a.claim(id, object{"call": call})
		if got["claimed"] == true {
			a.finish(id, got.text("token"), "not_sent", nil)
		}
		return got
	}
	for i := range 3 {
		if got := try("c1"); got["claimed"] != true {
			t.Fatalf("attempt %d of the first call: %v", i+1, got)
		}
	}
	if got := try("c1"); got["claimed"] != false || !strings.Contains(got.text("reason"), "attempts of this call") {
		t.Errorf("fourth attempt of a call: %v, want refusal", got)
	}
	for _, call := range []any{"c2", nil, nil} {
		if got := try(call); got["claimed"] != true {
			t.Errorf("attempt of call %v: %v", call, got)
		}
	}
	got := try("c3")
	if got["claimed"] != false || !strings.Contains(got.text("reason"), "attempts of the operation") ||
		got["state"] != "pending" || got["verdict"] != "failed_safe_to_retry" {
		t.Errorf("seventh attempt of an operation: %v, want refusal, and it stays pending", got)
	}
	if got := a.row(id, "sent_at"); got != "null" {
		t.Errorf("sent at %s, although no attempt did anything", got)
	}
}

func TestRepeatsAreRefusedWherePolicyOrProviderSaySo(t *testing.T) {
	t.Parallel()
	never := policy()
	never.Repeat = recon.RepeatNever
	for name, c := range map[string]struct {
		policy recon.Policy
		class  string
		reason string
	}{
		"the policy allows none":      {never, "indeterminate", "allows no repeat"},
		"a stored error ends repeats": {policy(), "stored_error", "stored an error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			a.policy(c.policy)
			id := a.open(nil).text("operation_id")
			if got := a.attempt(id, c.class, nil); got["retry_after_seconds"] != nil {
				t.Errorf("the finish promises a repeat: %v", got)
			}
			a.advance(time.Hour)
			got := a.claim(id, nil)
			if got["claimed"] != false || !strings.Contains(got.text("reason"), c.reason) || got["verdict"] != "unknown_reconciliation_required" {
				t.Errorf("a repeat: %v", got)
			}
			if got := a.call("claim_operation", object{"action": "refund.create", "holder": "w"}); got["claimed"] != false {
				t.Errorf("by action: %v", got)
			}
		})
	}
}

func TestAReleaseGrantsExactlyOneClaim(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.Repeat = recon.RepeatNever
	a.policy(p)
	id := a.open(nil).text("operation_id")
	a.attempt(id, "indeterminate", nil)
	release := func() {
		exec(t, a.pool, `UPDATE reconciler.operations SET state = 'pending', released = true, unknown_since = NULL
			WHERE tenant = 'default' AND operation_id = $1`, id)
	}
	release()
	if got := a.attempt(id, "not_sent", nil); got["state"] != "unknown" {
		t.Errorf("not_sent after a release: %v, want unknown: the first attempt is still in doubt", got)
	}
	if got := a.claim(id, nil); got["claimed"] != false {
		t.Errorf("a second claim of one release: %v", got)
	}
	release()
	a.advance(24 * time.Hour)
	if got := a.claim(id, nil); got["claimed"] != false || !strings.Contains(got.text("reason"), "key lifetime") {
		t.Errorf("a release that is used after the key's lifetime: %v", got)
	}
}

func TestClaimByActionTakesTheLongestWaitingClaimableOne(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	open := func(id string) {
		a.open(object{"id": id})
		a.advance(time.Minute)
	}
	for _, id := range []string{"stored", "live", "unknown", "old", "young"} {
		open(id)
	}
	a.attempt("stored", "stored_error", nil)
	a.attempt("unknown", "indeterminate", nil)
	a.claim("live", nil)
	a.advance(10 * time.Second) // the lease still lives
	var got []string
	for range 4 {
		c := a.call("claim_operation", object{"action": "refund.create", "holder": "w"})
		got = append(got, c.text("operation_id"))
	}
	if diff := cmp.Diff([]string{"old", "young", "unknown", ""}, got); diff != "" {
		t.Errorf("order of claims (-want +got):\n%s", diff)
	}
	a.advance(time.Hour)
	// All leases are over now: the one whose lease ended first comes first.
	if c := a.call("claim_operation", object{"action": "refund.create", "holder": "w"}); c["operation_id"] != "live" || c["attempt"] != 2.0 {
		t.Errorf("after the leases ended: %v, want live", c)
	}
	if c := a.call("claim_operation", object{"action": "nothing", "holder": "w"}); c["claimed"] != false || c["verdict"] != "rejected_by_policy" {
		t.Errorf("an action without policy: %v", c)
	}
	a.checkChains()
}

func TestWorkersThatClaimByActionAtOnceEachGetTheirOwn(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	const operations, workers = 20, 8
	for range operations {
		a.open(nil)
	}
	var mu sync.Mutex // guards got
	got := map[string]int{}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				out, err := a.try("claim_operation", object{"action": "refund.create", "holder": "w"})
				if err != nil {
					t.Error(err)
					return
				}
				if out["claimed"] != true {
					return
				}
				mu.Lock()
				got[out.text("operation_id")]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range got {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(got) != operations {
		t.Errorf("%d of %d operations were claimed", len(got), operations)
	}
}

func TestOwnWriteIsOneTransactionWithTheCallersChange(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	p := policy()
	p.ResultFields = []string{"row"}
	a.policy(p)
	exec(t, a.pool, `CREATE TABLE orders (id int PRIMARY KEY, refunded boolean)`)
	exec(t, a.pool, `INSERT INTO orders VALUES (1, false)`)
	run := func(commit bool) object {
		tx, err := a.pool.Begin(t.Context())
		must(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		opened, err := call(t, tx, "open_operation", refund.with(object{"key": "k"}))
		must(t, err)
		if opened["verdict"] == "existing" {
			return opened
		}
		in := object{"operation_id": opened["operation_id"], "holder": "w"}
		early, err := call(t, tx, "claim_operation", in)
		must(t, err)
		if early["claimed"] != false || !strings.Contains(early.text("reason"), "not committed") {
			t.Errorf("a claim before the commit: %v, want refusal", early)
		}
		claimed, err := call(t, tx, "claim_operation", in.with(object{"own_write": true}))
		must(t, err)
		exec(t, tx, `SAVEPOINT change`)
		exec(t, tx, `UPDATE orders SET refunded = true WHERE id = 1`)
		exec(t, tx, `RELEASE SAVEPOINT change`)
		done, err := call(t, tx, "finish_attempt", object{"operation_id": opened["operation_id"], "token": claimed["token"],
			"class": "succeeded", "effect_id": "orders/1", "result": object{"row": 1}})
		must(t, err)
		if commit {
			must(t, tx.Commit(t.Context()))
		}
		return done
	}
	if got := run(false); got["state"] != "succeeded" {
		t.Errorf("before the roll-back: %v", got)
	}
	var rows int
	scan(t, a.pool, `SELECT count(*) FROM reconciler.operations`, &rows)
	if rows != 0 {
		t.Errorf("%d operations outlived the roll-back", rows)
	}
	run(true)
	again := run(true)
	if again["state"] != "succeeded" || !cmp.Equal(again["result"], any(map[string]any{"row": 1.0})) {
		t.Errorf("the repeat: %v, want the stored result", again)
	}
	a.checkChains()
}

func TestResultKeepsOnlyWhatThePolicyNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields []string
		result any
		want   string
	}{
		"nothing by default": {[]string{}, object{"id": 1}, "null"},
		"named fields":       {[]string{"id", "gone"}, object{"id": "re_1", "card": "4242"}, `{"id": "re_1"}`},
		"no object":          {[]string{"id"}, "id", "null"},
		"a list":             {[]string{"id"}, []string{"id"}, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			p := policy()
			p.ResultFields = c.fields
			a.policy(p)
			id := a.open(nil).text("operation_id")
			a.attempt(id, "succeeded", object{"effect_id": "re_1", "result": c.result})
			if got := a.row(id, "result"); got != c.want {
				t.Errorf("kept %s, want %s", got, c.want)
			}
			var leaks int
			scan(t, a.pool, `SELECT count(*) FROM reconciler.journal WHERE body LIKE '%4242%'`, &leaks)
			if leaks > 0 {
				t.Error("the journal holds what the policy does not name")
			}
		})
	}
}

func TestAnActionWithoutPolicyIsNotSentButItsAttemptsEnd(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	waiting := a.open(nil).text("operation_id")
	begun := a.open(nil).text("operation_id")
	c := a.claim(begun, nil)
	exec(t, a.pool, `UPDATE reconciler.policies SET active = false`)
	if got := a.claim(waiting, nil); got["claimed"] != false || got["verdict"] != "rejected_by_policy" {
		t.Errorf("claim: %v, want rejected_by_policy", got)
	}
	if got := a.claim(begun, nil); got["verdict"] != "unknown_reconciliation_required" {
		t.Errorf("claim of one under way: %v, want that its outcome is not known", got)
	}
	if got := a.finish(begun, c.text("token"), "succeeded", object{"effect_id": "re_1"}); got["state"] != "succeeded" {
		t.Errorf("finish: %v", got)
	}
	if got := a.claim(begun, nil); got["verdict"] != "succeeded" {
		t.Errorf("claim of a finished one: %v", got)
	}
}

func TestClaimAndFinishRefuseBadInput(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	id := a.open(nil).text("operation_id")
	for name, c := range map[string]struct {
		function string
		in       object
		says     string
	}{
		"neither id nor action":     {"claim_operation", object{"holder": "w"}, "either"},
		"both id and action":        {"claim_operation", object{"holder": "w", "operation_id": id, "action": "x"}, "either"},
		"no holder":                 {"claim_operation", object{"operation_id": id}, `"holder" is missing`},
		"no such operation":         {"claim_operation", object{"operation_id": "x", "holder": "w"}, `no operation "x"`},
		"a lease of nothing":        {"claim_operation", object{"operation_id": id, "holder": "w", "lease_seconds": 0}, "not above 0"},
		"a lease in halves":         {"claim_operation", object{"operation_id": id, "holder": "w", "lease_seconds": 1.5}, "whole number"},
		"own_write in quotes":       {"claim_operation", object{"operation_id": id, "holder": "w", "own_write": "yes"}, "true or false"},
		"an unknown field of claim": {"claim_operation", object{"operation_id": id, "holder": "w", "lease": 3}, `no field "lease"`},
		"no such class":             {"finish_attempt", object{"operation_id": id, "token": "t", "class": "timeout"}, "not a class"},
		"no class":                  {"finish_attempt", object{"operation_id": id, "token": "t"}, `"class" is missing`},
		"no token":                  {"finish_attempt", object{"operation_id": id, "class": "refused"}, `"token" must be a text`},
		"nothing to finish":         {"finish_attempt", object{"operation_id": "x", "token": "t", "class": "refused"}, `no operation "x"`},
		"an unknown field":          {"finish_attempt", object{"operation_id": id, "token": "t", "class": "refused", "effect": "re"}, `no field "effect"`},
		"a result too large": {"finish_attempt", object{"operation_id": id, "token": "t", "class": "refused",
			"result": object{"a": strings.Repeat("x", 65536)}}, "at most 65536"},
	} {
		_, err := a.try(c.function, c.in)
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "22023" || pe.Hint == "" || !strings.Contains(pe.Message, c.says) {
			t.Errorf("%s: %v, want a refusal that says %q and what to do", name, err, c.says)
		}
	}
	if a.row(id, "version") != "1" {
		t.Error("bad input changed the row")
	}
}

func TestBackOffDoublesUpToItsMaximumWithFullJitter(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	body := `{"backoff":{"base":"1s","max":"1m"}}`
	for attempts, most := range map[int]float64{1: 1, 2: 2, 3: 4, 6: 32, 7: 60, 500: 60} {
		var low, high float64
		must(t, a.pool.QueryRow(t.Context(), `
			SELECT min(s), max(s) FROM (
				SELECT extract(epoch FROM reconciler.back_off($1::jsonb, $2)) AS s FROM generate_series(1, 500)) x`,
			body, attempts).Scan(&low, &high))
		if low < 0 || low > most/10 || high > most || high < most*0.9 {
			t.Errorf("after %d attempts it waits %v to %v s, want 0 to %v", attempts, low, high, most)
		}
	}
}
