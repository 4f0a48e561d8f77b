package migrations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

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
