package guard_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// stand is a real ledger on a clock that the test moves, a guard, and a provider that
// keeps keys as the real one does.
type stand struct {
	t        *testing.T
	ledger   *ledger.Ledger
	db       *pgxpool.Pool
	guard    *guard.Guard
	provider *provider
	clock    *clock
}

// clock is the simulated one, also read by the provider's goroutines.
type clock struct{ after atomic.Int64 }

func (c *clock) now() time.Time { return start.Add(time.Duration(c.after.Load())) }

func newStand(t *testing.T, policies ...recon.Policy) *stand {
	t.Helper()
	url := pgtest.URL(t, pgtest.SimulatedTime(start))
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	db, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if len(policies) == 0 {
		policies = []recon.Policy{repeatable()}
	}
	if _, err := l.ApplyPolicies(t.Context(), policies, start); err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, ledger: l, db: db, provider: &provider{made: map[string]int64{}}, clock: &clock{}}
	s.guard = &guard.Guard{Ledger: l, Holder: "test"}
	// A wait between two attempts moves the database's clock instead.
	guard.SetPause(s.guard, func(_ context.Context, d time.Duration) error { s.advance(d); return nil })
	return s
}

func repeatable() recon.Policy {
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class = "refund.create", "shop", "refund", recon.Irreversible
	p.Repeat, p.KeyLifetime, p.RepeatAnswer = recon.RepeatSameKey, recon.Duration(24*time.Hour), true
	p.ResultFields = []string{"id"}
	p.Accounts = []recon.Account{{Account: "acct_1", Mode: "live"}}
	return p
}

func intent(order string) ledger.OpenRequest {
	step := int64(1)
	return ledger.OpenRequest{Action: "refund.create", Target: "order:" + order, Case: "case-" + order, Step: &step,
		Amount: 4200, Currency: "EUR", Request: json.RawMessage(`{"charge":"ch_1","amount":4200}`)}
}

func (s *stand) advance(d time.Duration) {
	s.t.Helper()
	s.clock.after.Add(int64(d))
	if err := s.ledger.SetSimulatedTime(s.t.Context(), s.clock.now()); err != nil {
		s.t.Fatal(err)
	}
}

// do calls the guard and fails on an error.
func (s *stand) do(c guard.Call) guard.Answer {
	s.t.Helper()
	a, err := s.guard.Do(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *stand) state(id recon.OperationID) recon.State {
	s.t.Helper()
	story, err := s.ledger.Story(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return story.Operation.State
}

// kinds lists the journal of an operation.
func (s *stand) kinds(id recon.OperationID) []string {
	s.t.Helper()
	story, err := s.ledger.Story(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	var kinds []string
	for _, e := range story.Journal {
		kinds = append(kinds, string(e.Kind))
	}
	return kinds
}

// provider makes one effect for each key, whatever its answers come to.
type provider struct {
	mu    sync.Mutex
	made  map[string]int64 // keys to how often their effect was made
	sends int
}

// effects is the number of effects, and sends that of requests.
func (p *provider) effects() (effects, sends int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made), p.sends
}

func (p *provider) receive(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends++
	p.made[key]++
}

// sends makes a Send that answers in turn as told; the last one answers for ever.
func (p *provider) answers(reports ...recon.AttemptReport) guard.Send {
	var mu sync.Mutex
	return func(_ context.Context, a guard.Attempt) recon.AttemptReport {
		mu.Lock()
		defer mu.Unlock()
		r := reports[0]
		if len(reports) > 1 {
			reports = reports[1:]
		}
		if r.Class != recon.ClassNotSent && r.Class != recon.ClassRefused {
			p.receive(a.Key)
		}
		return r
	}
}

var (
	done    = recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: "re_1", Result: json.RawMessage(`{"id":"re_1","card":"4242"}`)}
	lost    = recon.AttemptReport{Class: recon.ClassIndeterminate, ErrorCode: "no_answer"}
	refused = recon.AttemptReport{Class: recon.ClassRefused, ErrorCode: "charge_disputed"}
	notSent = recon.AttemptReport{Class: recon.ClassNotSent, ErrorCode: "rate_limit"}
)

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
