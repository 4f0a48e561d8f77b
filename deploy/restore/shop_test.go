//go:build e2e

package restore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const configuration = `
sources:
  - name: stripe-main
    kind: stripe
    settings: {account: acct_1, mode: live, api_key: "${STRIPE_API_KEY}", api_url: "${STRIPE_URL}", marker: op_id, per_second: 100000}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible, repeat: same_key, on_never_sent: fail}
`

// shop is a ledger and a fake Stripe on one simulated clock, before and after a restore.
type shop struct {
	*desk
	stripe *stripetest.Server
	old    string // where the ledger was
	new    string // where it is restored

	mu sync.Mutex // guards at
	at time.Time
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{desk: newDesk(t), at: monday}
	server, fresh := newServer(t), newServer(t)
	if err := server.CreateDatabase(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	s.old, s.new = server.URL(database), fresh.URL(database)
	var err error
	s.stripe, err = stripetest.Start(stripetest.Options{
		Now: s.now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "rk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stripe.Close)
	file := filepath.Join(s.dir, "reconciler.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"SERVER=" + server.URL("postgres"), "NEW_SERVER=" + fresh.URL("postgres"), "RECONCILER_CONFIG=" + file,
		"STRIPE_URL=" + s.stripe.URL(), "STRIPE_API_KEY=rk_live_TESTONLY",
	}
	s.use(s.old)
	s.reconciler("migrate up")
	if err := migrations.SimulateTime(t.Context(), s.old, monday); err != nil {
		t.Fatal(err)
	}
	s.reconciler("policy apply")
	must(t, s.old, `CREATE ROLE shop LOGIN IN ROLE reconciler_agent`)
	return s
}

// use makes a ledger the one that the page's commands are about.
func (s *shop) use(url string) { s.env = append(s.env, "RECONCILER_DATABASE_URL="+url) }

func (s *shop) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// until moves the clocks of the provider and of a ledger.
func (s *shop) until(url string, at time.Time) {
	s.Helper()
	s.mu.Lock()
	s.at = at
	s.mu.Unlock()
	must(s.T, url, `UPDATE reconciler.simulated_time SET at = $1`, at)
}

// verb runs a verb as of now and reads its answer.
func (s *shop) verb(args string, v any) {
	s.Helper()
	s.decode(s.reconciler(args+" --format json"), v)
}

func (s *shop) decode(out string, v any) {
	s.Helper()
	if err := json.Unmarshal([]byte(out), v); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// call calls one of the three functions, as the shop's own login.
func (s *shop) call(url, function string, in map[string]any) map[string]any {
	s.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	var out map[string]any
	answer := ask(s.T, as("shop", url), "SELECT reconciler."+function+"($1)::text", text)[0]
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		s.Fatal(err)
	}
	return out
}

// open records the intent of a case and gives the operation's id and the verdict.
func (s *shop) open(url, name string) (id, verdict string) {
	s.Helper()
	out := s.call(url, "open_operation", map[string]any{
		"action": "refund.create", "target": "order:" + name, "parent": "ch_" + name, "case": name, "step": 1,
		"amount": 4200, "currency": "EUR", "request": map[string]any{"charge": "ch_" + name, "amount": 4200},
	})
	id, _ = out["operation_id"].(string)
	return id, out["verdict"].(string)
}

// send claims the operation of a case and makes the refund, if it arrives there; the
// answer comes or is lost. It gives the refund's id.
func (s *shop) send(url, name string, arrives, answered bool) string {
	s.Helper()
	id, _ := s.open(url, name)
	claim := s.call(url, "claim_operation", map[string]any{"operation_id": id, "holder": "worker"})
	if claim["claimed"] != true {
		s.Fatalf("claim %s: %v", name, claim)
	}
	finish := map[string]any{"operation_id": id, "token": claim["token"], "class": "indeterminate"}
	var refund stripetest.Refund
	if arrives {
		var err error
		refund, err = s.stripe.AddRefund(stripetest.Refund{
			Account: "acct_1", Mode: "live", Charge: "ch_" + name, Amount: 4200, Currency: "eur",
			Key: claim["key"].(string), Metadata: map[string]string{"op_id": id},
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	if answered {
		finish["class"], finish["effect_id"] = "succeeded", refund.ID
	}
	s.call(url, "finish_attempt", finish)
	return refund.ID
}

// states are those of all operations, with their effects, by case.
func (s *shop) states(url string) map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, row := range ask(s.T, url, `SELECT concat_ws(' ', "case", state, effect_id) FROM reconciler.operations`) {
		name, state, _ := strings.Cut(row, " ")
		all[name] = state
	}
	return all
}

func later(d time.Duration) time.Time { return monday.Add(d) }

func rfc(t time.Time) string { return fmt.Sprintf("--now %s", t.Format(time.RFC3339)) }
