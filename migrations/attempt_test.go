package migrations_test

import (
	"errors"
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
