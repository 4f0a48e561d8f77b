package ledger_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const source recon.SourceName = "stripe-main"

// t0 is when the operations of these tests became unknown.
var t0 = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

// world is one database with a ledger on it, and a superuser's pool to look behind it.
type world struct {
	*testing.T
	led   *ledger.Ledger
	db    *pgxpool.Pool
	url   string
	calls *counter
}

// counter counts statements, and the round trips that they take: many that are sent at once
// take one.
type counter struct{ n, trips atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	c.trips.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	c.n.Add(int64(d.Batch.Len()))
	c.trips.Add(1)
	return ctx
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func newWorld(t *testing.T, options ...pgtest.Option) *world {
	t.Helper()
	w := &world{T: t, url: pgtest.URL(t, options...), calls: &counter{}}
	var err error
	w.led, err = ledger.Open(t.Context(), ledger.Options{URL: w.url, MaxConns: 4, Tracer: w.calls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.led.Close)
	if w.db, err = pgxpool.New(t.Context(), w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	w.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at)
		VALUES ('default', 'refund.create', 1, $1, true, $2)`, policyBody(w.T, false), t0)
	return w
}

func policyBody(t testing.TB, oneOpen bool) []byte {
	t.Helper()
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class, p.OneOpen = "refund.create", source, "refund", recon.Irreversible, oneOpen
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.db.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// one reads one value.
func one[T any](w *world, sql string, args ...any) T {
	w.Helper()
	var v T
	if err := w.db.QueryRow(w.Context(), sql, args...).Scan(&v); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return v
}

// seed puts an operation into the ledger as the acting side would leave it, with its
// first journal entry.
func (w *world) seed(id string, change ...func(*recon.Operation, *recon.Check)) recon.Operation {
	w.Helper()
	o := recon.Operation{
		ID: recon.OperationID(id), Source: source, Action: "refund.create", Target: "order:" + id, Parent: "pi_" + id, Key: "k-" + id,
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.Unknown, CreatedAt: t0.Add(-time.Minute), SentAt: t0.Add(-time.Minute),
		Account: "acct_1", Mode: "live", Marks: []recon.Mark{recon.MarkKey, recon.MarkReference}, Version: 1, UnknownSince: t0,
		InDoubt: true, Attempts: 1, PolicyVersion: 1,
	}
	k := recon.Check{Next: t0.Add(30 * time.Second)}
	for _, f := range change {
		f(&o, &k)
	}
	null := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t
	}
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	body := fmt.Sprintf(`{"at": %q, "kind": "opened"}`, o.CreatedAt.Format(time.RFC3339))
	head := sha256.Sum256([]byte(body))
	w.exec(`INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency, state, created_at,
			sent_at, closed_at, effect_id, account, mode, marks, policy_version, version, attempts, in_doubt, lease_token, lease_holder, lease_until,
			unknown_since, slot, chain_seq, chain_head)
		VALUES ('default', $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 1, $18, $19, $20, $21, $22, $23, $24, 1, $25)`,
		id, string(o.Source), o.Action, o.Target, o.Parent, text(o.Key), o.Money.Minor, o.Money.Currency, string(o.State), o.CreatedAt,
		null(o.SentAt), null(o.ClosedAt), text(o.EffectID), text(o.Account), o.Mode, []string{"key", "reference"}, o.PolicyVersion, o.Attempts,
		o.InDoubt, leaseToken(o), leaseHolder(o), null(o.LeaseUntil), null(o.UnknownSince), nil, head[:])
	w.exec(`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash) VALUES ('default', $1, 1, 'opened', $2, $3, $4)`,
		id, o.CreatedAt, body, head[:])
	w.exec(`INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check, failures) VALUES ('default', $1, $2, $3, $4, $5)`,
		id, string(o.Source), !o.State.Open(), null(k.Next), k.Failures)
	return o
}

func leaseToken(o recon.Operation) any {
	if o.State == recon.InProgress {
		return "token-" + string(o.ID)
	}
	return nil
}

func leaseHolder(o recon.Operation) any {
	if o.State == recon.InProgress {
		return "worker-A"
	}
	return nil
}

// hold takes the source for the test.
func (w *world) hold() ledger.Hold {
	w.Helper()
	h, err := w.led.HoldSource(w.Context(), source, "host-1/"+uuid.NewString(), time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// due reads one source's due cases.
func (w *world) due(now time.Time, limit int) []recon.Case {
	w.Helper()
	cases, err := w.led.Due(w.Context(), ledger.Scope{Source: source}, now, limit)
	if err != nil {
		w.Fatal(err)
	}
	return cases
}

// record writes a batch that must succeed.
func (w *world) record(b ledger.Batch) ledger.Recorded {
	w.Helper()
	got, err := w.led.Record(w.Context(), b)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

func (w *world) story(id string) recon.Story {
	w.Helper()
	s, err := w.led.Story(w.Context(), recon.OperationID(id))
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// refund is the effect that an operation's sender made.
func refund(o recon.Operation, id string) recon.Effect {
	return recon.Effect{
		ID: id, Source: source, System: "stripe", Kind: "refund", Status: recon.Completed, Money: o.Money, Parent: o.Parent,
		OtherParents: []string{"ch_" + string(o.ID)}, Reference: string(o.ID), CreatedAt: o.SentAt.Add(time.Second),
		Account: "acct_1", Mode: "live", Metadata: json.RawMessage(`{"op_id":"` + string(o.ID) + `"}`),
	}
}

// lookFound is a look by reference that found an effect.
func lookFound(o recon.Operation, at time.Time, e recon.Effect) recon.Look {
	return recon.Look{
		ID: newID(), Source: source, Method: recon.ByReference, Outcome: recon.Found, Kind: "refund", Account: "acct_1", Mode: "live",
		Reference: string(o.ID), At: at, Complete: true, Calls: 1, RequestID: "req_1", ReplyHash: []byte{1, 2, 3}, Found: []recon.EffectIdentity{e.Identity()},
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// succeed is the decision of a rule that found o's effect.
func succeed(o recon.Operation, e recon.Effect, k recon.Look, now time.Time) recon.Decision {
	return recon.Decision{
		Operation: o.ID, Rule: "found_equal", Reason: "One completed refund carries our reference and is equal.",
		From: o.State, To: recon.Succeeded, EffectID: e.ID, LookIDs: []string{k.ID},
		Links: []recon.Match{{Operation: o.ID, Effect: e.Identity(), Basis: recon.OnReference, Certainty: recon.Proof, Role: recon.Main}},
		Check: recon.Check{Next: now.Add(24 * time.Hour), Looks: 1},
	}
}

// stay is the decision of a rule that learned nothing and plans the next look.
func stay(o recon.Operation, next time.Time) recon.Decision {
	return recon.Decision{Operation: o.ID, Rule: "not_known", Reason: "Nothing was found.", From: o.State, To: o.State, Check: recon.Check{Next: next, Looks: 1}}
}

// closing is a whole batch that closes operations by their effects.
func closing(h ledger.Hold, now time.Time, ops ...recon.Operation) ledger.Batch {
	b := ledger.Batch{Hold: h, RunID: "run-1", Now: now, Versions: map[recon.OperationID]int64{}}
	for _, o := range ops {
		e := refund(o, "re_"+string(o.ID))
		k := lookFound(o, now, e)
		b.Effects, b.Looks = append(b.Effects, e), append(b.Looks, k)
		b.Raw = append(b.Raw, ledger.Raw{Effect: e.Identity(), Bytes: []byte(`{"id":"` + e.ID + `"}`)})
		b.Decisions = append(b.Decisions, succeed(o, e, k, now))
		b.Versions[o.ID] = o.Version
	}
	return b
}

// deciding is a batch of decisions without looks.
func deciding(h ledger.Hold, now time.Time, ops []recon.Operation, ds ...recon.Decision) ledger.Batch {
	b := ledger.Batch{Hold: h, Now: now, Decisions: ds, Versions: map[recon.OperationID]int64{}}
	for _, o := range ops {
		b.Versions[o.ID] = o.Version
	}
	return b
}

// verifyChains recomputes every chain from the stored texts.
func (w *world) verifyChains() {
	w.Helper()
	bad := one[int](w, `
		SELECT count(*) FROM (
			SELECT j.hash <> sha256(coalesce(lag(j.hash) OVER (PARTITION BY j.operation_id ORDER BY j.seq), ''::bytea) || convert_to(j.body, 'UTF8')) AS bad
			FROM reconciler.journal j WHERE j.tenant = 'default') x WHERE x.bad`)
	loose := one[int](w, `
		SELECT count(*) FROM reconciler.operations o
		WHERE o.tenant = 'default' AND NOT EXISTS (SELECT FROM reconciler.journal j
			WHERE j.tenant = 'default' AND j.operation_id = o.operation_id AND j.seq = o.chain_seq AND j.hash = o.chain_head)`)
	if bad != 0 || loose != 0 {
		w.Errorf("chains: %d entries do not follow from the one before, %d heads are not the last entry", bad, loose)
	}
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, d)
	}
}
