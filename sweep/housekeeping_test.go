package sweep

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// kept counts what housekeeping drops: requests, bytes of effects and of events.
func (h *hooked) kept() []string {
	h.Helper()
	return h.rows(`
		SELECT 'requests ' || count(*) FROM reconciler.operations WHERE request IS NOT NULL
		UNION ALL SELECT 'replies ' || count(*) FROM reconciler.blobs WHERE bytes IS NOT NULL AND about IS NOT NULL
		UNION ALL SELECT 'events ' || count(*) FROM reconciler.events e JOIN reconciler.blobs b ON b.tenant = e.tenant AND b.id = e.blob_id AND b.bytes IS NOT NULL`)
}

func (h *hooked) wantKept(when string, want ...string) {
	h.Helper()
	if diff := cmp.Diff(want, h.kept()); diff != "" {
		h.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// tidied runs the housekeeping at an instant, in a ledger whose longest keys are those of an
// action that is configured no more.
func (h *hooked) tidied(keys time.Duration, at time.Time, want Tidied) {
	h.Helper()
	h.exec(`DELETE FROM reconciler.policies WHERE action = 'once.sent'`)
	h.exec(fmt.Sprintf(`INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at)
		VALUES ('default', 'once.sent', 1, '{"key_lifetime": "%gh"}', false, now())`, keys.Hours()))
	got, err := (&Housekeeping{Ledger: h.ledger, Inbox: h.inbox}).Run(h.Context(), at)
	if err != nil {
		h.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("at %s (-want +got):\n%s", at, diff)
	}
}

func TestHousekeepingDropsWhatIsOldAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	closed, open := refund(1), refund(2)
	key := h.lose(closed)
	h.happen(closed, key)
	h.deliver()
	h.take()
	h.exec(`UPDATE reconciler.effects SET needs_read = true`)
	h.run() // a reading keeps the bytes of the effect
	h.lose(open)
	end := h.wantState(closed, recon.Succeeded).Operation.ClosedAt
	all := []string{"requests 2", "replies 4", "events 2"}
	h.wantKept("at the beginning", all...)

	// The ids of bytes have the time of this process, which is later than the stand's.
	const day = 24 * time.Hour
	h.tidied(0, end.Add(7*day), Tidied{})
	h.tidied(30*day, end.Add(8*day), Tidied{}) // a key could still answer a repeat
	h.wantKept("until a week has gone by", all...)
	h.tidied(0, end.Add(7*day+time.Second), Tidied{Requests: 1})
	h.wantKept("after a week", "requests 1", all[1], all[2])
	h.tidied(60*day, time.Now().Add(31*day), Tidied{Events: 2})
	h.tidied(0, time.Now().Add(31*day), Tidied{Replies: 4})
	h.wantKept("after a month", "requests 1", "replies 0", "events 0")
	h.tidied(0, time.Now().Add(32*day), Tidied{})

	// Everything that proves what happened is still there, and an intent still finds its operation.
	h.verify()
	h.wantState(closed, recon.Succeeded)
	again := map[string]any{
		"action": "refund.create", "target": "order:" + closed.id, "id": closed.id, "amount": closed.amount, "currency": "EUR",
		"parent": closed.charge, "request": map[string]any{"amount": closed.amount},
	}
	if got := h.call("open_operation", again); got["verdict"] != "existing" {
		t.Errorf("the intent again: %v", got)
	}
}

func TestHousekeepingClosesRunsOfTheDead(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	for _, name := range []string{"sweep/taken-out-of-the-configuration", "audit/stripe-main"} {
		if _, err := h.ledger.BeginRun(t.Context(), ledger.RunStart{Name: name, Holder: "dead", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	h.tidied(0, h.now(), Tidied{})
	h.pass(time.Minute)
	alive, err := h.ledger.BeginRun(t.Context(), ledger.RunStart{Name: "sweep/alive", Holder: "alive", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h.tidied(0, h.now(), Tidied{Runs: 2})
	h.tidied(0, h.now(), Tidied{})
	if err := h.ledger.FinishRun(t.Context(), alive, ledger.RunEnd{Outcome: ledger.RunDone}); err != nil {
		t.Errorf("the run of the living: %v", err)
	}
}

// More than one batch, and each in a transaction of its own.
func TestHousekeepingGoesOnBatchByBatch(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.exec(`INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, state, created_at, closed_at, mode, request, policy_version)
		SELECT 'default', 'op_' || n, 'stripe-main', 'refund.create', 't', 'failed', $1, $1, 'live', '{}', 1 FROM generate_series(1, 2500) n`, monday.Add(-8*24*time.Hour))
	h.tidied(0, monday, Tidied{Requests: 2500})
	h.wantKept("after it", "requests 0", "replies 0", "events 0")
}

// Of runs that are long over, those stay that somebody still asks for: what audits found and
// reports said, the newest tick, so that none is run again, and the newest success.
func TestHousekeepingDropsWhatRunsDidLongAgo(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	const day = 24 * time.Hour
	for id, r := range map[string]struct {
		name, tick, outcome string
		age                 time.Duration
	}{
		"first":     {"sweep/stripe-main", "t1", ledger.RunDone, 60 * day},
		"abandoned": {"sweep/stripe-main", "t2 abandoned x", ledger.RunAbandoned, 55 * day},
		"failed":    {"sweep/stripe-main", "t2", ledger.RunFailed, 50 * day},
		"newest":    {"sweep/stripe-main", "t3", ledger.RunFailed, 45 * day},
		"by hand":   {"sweep/stripe-main", "", ledger.RunDone, 40 * day},
		"again":     {"sweep/stripe-main", "", ledger.RunFailed, 35 * day},
		"young":     {"sweep/stripe-main", "", ledger.RunFailed, 29 * day},
		"audit":     {"audit/stripe-main", "t1", ledger.RunDone, 400 * day},
		"audit two": {"audit/stripe-main", "t2", ledger.RunDone, 399 * day},
		"report":    {"report", "2025-01-01", ledger.RunDone, 400 * day},
		"told":      {"report/day", "t1", ledger.RunDone, 400 * day},
		"told two":  {"report/day", "t2", ledger.RunDone, 399 * day},
	} {
		h.exec(`INSERT INTO reconciler.runs (tenant, run_id, name, tick, holder, token, lease_until, heartbeat_at, started_at, finished_at, outcome)
			VALUES ('default', $1, $2, nullif($3, ''), 'h', '', $4, $4, $4, $4, $5)`, id, r.name, r.tick, monday.Add(-r.age), r.outcome)
	}
	h.tidied(0, monday, Tidied{OldRuns: 4})
	want := []string{"audit", "audit two", "by hand", "newest", "report", "told", "told two", "young"}
	if diff := cmp.Diff(want, h.rows(`SELECT r.run_id FROM reconciler.runs r ORDER BY r.run_id`)); diff != "" {
		t.Errorf("what is kept (-want +got):\n%s", diff)
	}
	h.tidied(0, monday, Tidied{})
}
