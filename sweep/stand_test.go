package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	testSource  = recon.SourceName("stripe-main")
	testAccount = "acct_1"
	testMarker  = "op_id"
)

// monday is when every stand begins.
var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// stand is a real ledger and a fake Stripe over HTTP, on one simulated clock.
type stand struct {
	*testing.T
	ledger *ledger.Ledger
	pool   *pgxpool.Pool
	stripe *stripetest.Server
	sweep  *Sweep
	policy recon.Policy
	count  *counter

	mu    sync.Mutex // guards at
	at    time.Time
	began time.Time // when the work began that a test breaks off
}

type standOption func(*recon.Policy)

func newStand(t *testing.T, options ...standOption) *stand {
	t.Helper()
	s := &stand{T: t, at: monday, count: &counter{}}
	url := pgtest.URL(t, pgtest.SimulatedTime(monday))
	var err error
	if s.pool, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	if s.ledger, err = ledger.Open(t.Context(), ledger.Options{URL: url, Tracer: s.count}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ledger.Close)
	s.stripe, err = stripetest.Start(stripetest.Options{
		Now: s.now, Seed: 1, Accounts: []stripetest.Account{{ID: testAccount, Mode: "live", Key: "sk_live_testonly"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stripe.Close)
	client := s.client()
	policy := recon.DefaultPolicy()
	policy.Action, policy.Source, policy.Effect, policy.Class = "refund.create", testSource, "refund", recon.Irreversible
	sheet := client.Sheet()
	policy.System, policy.Accounts, policy.Marker = sheet.System, sheet.Accounts, sheet.Marker
	policy.KeyLifetime, policy.RepeatAnswer = sheet.KeyLifetime, sheet.RepeatAnswer
	for _, option := range options {
		option(&policy)
	}
	s.policy = policy
	body, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	s.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, created_at) VALUES ('default', $1, 1, $2, $3)`,
		policy.Action, body, monday)
	s.sweep = &Sweep{Ledger: s.ledger, Source: client, Holder: "test/1"}
	return s
}

// client is the real source, asking the fake over HTTP as fast as it likes.
func (s *stand) client(changes ...func(*stripe.Settings, *stripe.Options)) *stripe.Source {
	s.Helper()
	transport := &http.Transport{}
	s.Cleanup(transport.CloseIdleConnections)
	settings, options := stripe.Settings{
		Account: testAccount, Mode: "live", APIURL: s.stripe.URL(), Marker: testMarker, PerSecond: 1_000_000,
	}, stripe.Options{Transport: transport}
	for _, change := range changes {
		change(&settings, &options)
	}
	if err := settings.APIKey.UnmarshalText([]byte("sk_live_testonly")); err != nil {
		s.Fatal(err)
	}
	client, err := stripe.New(testSource, settings, options)
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func (s *stand) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// pass moves the clock of the world and of the database.
func (s *stand) pass(d time.Duration) {
	s.Helper()
	s.mu.Lock()
	s.at = s.at.Add(d)
	at := s.at
	s.mu.Unlock()
	s.exec(`UPDATE reconciler.simulated_time SET at = $1`, at)
}

func (s *stand) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// call calls one of the three functions of the acting side.
func (s *stand) call(function string, in map[string]any) map[string]any {
	s.Helper()
	var out map[string]any
	if err := s.pool.QueryRow(s.Context(), "SELECT reconciler."+function+"($1)", in).Scan(&out); err != nil {
		s.Fatalf("%s(%v): %v", function, in, err)
	}
	return out
}

// intent is a refund that an agent means to make.
type intent struct {
	id     string
	charge string
	amount int64
}

func refund(n int) intent {
	return intent{id: fmt.Sprintf("op_%04d", n), charge: fmt.Sprintf("ch_%04d", n), amount: int64(1000 + n)}
}

// open records an intent.
func (s *stand) open(i intent) {
	s.Helper()
	in := map[string]any{
		"action": "refund.create", "target": "order:" + i.id, "id": i.id, "amount": i.amount, "currency": "EUR",
		"request": map[string]any{"amount": i.amount},
	}
	if i.charge != "" {
		in["parent"] = i.charge
	}
	if out := s.call("open_operation", in); out["verdict"] != "new" {
		s.Fatalf("open %s: %v", i.id, out)
	}
}

// claim begins an attempt and gives the token and the key.
func (s *stand) claim(i intent) (token, key string) {
	s.Helper()
	out := s.call("claim_operation", map[string]any{"operation_id": i.id, "holder": "agent"})
	if out["claimed"] != true {
		s.Fatalf("claim %s: %v", i.id, out)
	}
	return out["token"].(string), out["key"].(string)
}

// lose records, sends and never hears an answer.
func (s *stand) lose(i intent) (key string) {
	s.Helper()
	s.open(i)
	token, key := s.claim(i)
	s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "indeterminate"})
	return key
}

// happen makes the refund at Stripe, as sent by the agent.
func (s *stand) happen(i intent, key string) stripetest.Refund {
	s.Helper()
	charge := i.charge
	if charge == "" {
		charge = "ch_of_" + i.id
	}
	r, err := s.stripe.AddRefund(stripetest.Refund{
		Account: testAccount, Mode: "live", Charge: charge, Amount: i.amount, Currency: "eur",
		Key: key, Metadata: map[string]string{testMarker: i.id},
	})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// run sweeps once and demands that it goes well.
func (s *stand) run() Outcome {
	s.Helper()
	out, err := s.sweep.Run(s.Context(), Options{Now: s.now})
	if err != nil {
		s.Fatalf("sweep: %v", err)
	}
	sum := out.Succeeded + out.Failed + out.Released + out.ManualReview + out.Kept + out.Blind + out.Lost + out.SetAside
	if out.Claimed != sum {
		s.Fatalf("claimed %d is not the sum of its classes, %d: %+v", out.Claimed, sum, out)
	}
	return out
}

func (s *stand) story(i intent) recon.Story {
	s.Helper()
	story, err := s.ledger.Story(s.Context(), recon.OperationID(i.id))
	if err != nil {
		s.Fatal(err)
	}
	return story
}

func (s *stand) wantState(i intent, want recon.State) recon.Story {
	s.Helper()
	story := s.story(i)
	if story.Operation.State != want {
		s.Errorf("%s is %s, want %s", i.id, story.Operation.State, want)
	}
	return story
}

func (s *stand) findings(kinds ...recon.FindingKind) []ledger.FindingRow {
	s.Helper()
	rows, err := s.ledger.Findings(s.Context(), ledger.FindingFilter{Kinds: kinds, Limit: 10_000})
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

// rows reads a statement's rows as one text each.
func (s *stand) rows(sql string) []string {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), sql)
	if err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return list
}

// everything is the whole content of the tables that a sweep may write.
func (s *stand) everything() []string {
	s.Helper()
	var all []string
	for _, table := range []string{
		"operations", "checks", "journal", "looks", "effects", "effect_changes", "matches", "findings", "notices", "runs", "source_state", "coverage", "blobs",
	} {
		for _, row := range s.rows("SELECT x::text FROM reconciler." + table + " x ORDER BY 1") {
			all = append(all, table+" "+row)
		}
	}
	return all
}

// counter counts statements, many that are sent at once each by itself.
type counter struct {
	mu sync.Mutex // guards n
	n  int
}

func (c *counter) add(ctx context.Context, statements int) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += statements
	return ctx
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return c.add(ctx, 1)
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return c.add(ctx, d.Batch.Len())
}

func (c *counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (c *counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// take gives the count so far and begins anew.
func (c *counter) take() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = 0
	return n
}
