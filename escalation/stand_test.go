package escalation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const source recon.SourceName = "stripe-main"

// clock is a clock that moves only when somebody waits.
type clock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return ctx.Err()
}

// stand is a ledger on a real PostgreSQL, a Slack workspace over HTTP, and a
// deliverer between them.
type stand struct {
	*testing.T
	led     *ledger.Ledger
	db      *pgxpool.Pool
	slack   *slacktest.Server
	clock   *clock
	policy  escalation.Policy
	deliver *escalation.Deliverer
	log     *bytes.Buffer
	hold    ledger.Hold

	mu      sync.Mutex // guards results
	results map[string]map[escalation.Result]int
}

func newStand(t *testing.T, channels ...string) *stand {
	t.Helper()
	s := &stand{T: t, clock: &clock{at: time.Now().UTC().Truncate(time.Second)}, log: &bytes.Buffer{}, results: map[string]map[escalation.Result]int{}}
	url := pgtest.URL(t)
	var err error
	if s.led, err = ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.led.Close)
	if s.db, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.db.Close)
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class, p.KeyLifetime = "refund.create", source, "refund", recon.Irreversible, recon.Duration(24*time.Hour)
	body, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	s.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at) VALUES ('default', 'refund.create', 1, $1, true, now())`, body)
	if s.hold, err = s.led.HoldSource(t.Context(), source, "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	// Slack's own pace: a message that comes too soon is refused.
	if s.slack, err = slacktest.Start(slacktest.Options{Channels: channels, Now: s.clock.now, Pace: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.slack.Close)
	s.deliver = s.deliverer(channels...)
	s.policy = escalation.Policy{Everybody: slices.Sorted(maps.Keys(s.deliver.Notifiers))}
	return s
}

// deliverer makes one destination per channel, of the same name.
func (s *stand) deliverer(channels ...string) *escalation.Deliverer {
	s.Helper()
	if len(channels) == 0 {
		channels = []string{"payments-recon"}
	}
	d := &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{}, Outbox: s.led, Stories: s.led, Now: s.clock.now, Pause: s.clock.wait,
		Log: slog.New(slog.NewTextHandler(s.log, nil)),
		Observe: func(destination string, r escalation.Result) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.results[destination] == nil {
				s.results[destination] = map[escalation.Result]int{}
			}
			s.results[destination][r]++
		},
	}
	for _, c := range channels {
		n, err := slack.New(c, slack.Settings{Channel: "#" + c, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: s.slack.URL()})
		if err != nil {
			s.Fatal(err)
		}
		d.Notifiers[c] = n
	}
	return d
}

func (s *stand) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.db.Exec(s.Context(), sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// lost records an operation whose answer was lost, through the acting side's own
// functions.
func (s *stand) lost(name string) recon.Operation {
	s.Helper()
	ask := func(function, in string, out any) {
		var b []byte
		if err := s.db.QueryRow(s.Context(), "SELECT reconciler."+function+"($1::jsonb)", in).Scan(&b); err != nil {
			s.Fatalf("%s: %v", function, err)
		}
		if err := json.Unmarshal(b, out); err != nil {
			s.Fatal(err)
		}
	}
	var opened struct {
		ID string `json:"operation_id"`
	}
	ask("open_operation", fmt.Sprintf(`{"action":"refund.create","target":"order:%s","parent":"pi_%[1]s","amount":4200,"currency":"EUR","account":"acct_1","mode":"live","request":{"order":"%[1]s"}}`, name), &opened)
	var claimed struct {
		Token string `json:"token"`
	}
	ask("claim_operation", fmt.Sprintf(`{"operation_id":%q,"holder":"worker-1"}`, opened.ID), &claimed)
	var finished struct{ State string }
	ask("finish_attempt", fmt.Sprintf(`{"operation_id":%q,"token":%q,"class":"indeterminate","error_code":"timeout"}`, opened.ID, claimed.Token), &finished)
	if finished.State != "unknown" {
		s.Fatalf("the operation is %q, want unknown", finished.State)
	}
	return s.story(recon.OperationID(opened.ID)).Operation
}

func (s *stand) story(id recon.OperationID) recon.Story {
	s.Helper()
	story, err := s.led.Story(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return story
}

func finding(o recon.Operation, k recon.FindingKind) recon.Finding {
	return recon.Finding{Kind: k, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{o.ID},
		Reason: "its answer was lost, and 3 looks have not found it", Money: o.Money}
}

// pass records a pass over one operation.
func (s *stand) pass(id recon.OperationID, raise []recon.Finding, end ...recon.Finding) {
	s.Helper()
	story := s.story(id)
	c := recon.Case{Operation: story.Operation, Policy: story.Policy, Check: story.Check}
	for _, f := range story.Findings {
		if f.Open() {
			c.Findings = append(c.Findings, f)
		}
	}
	d := recon.Decision{Operation: id, Rule: "test", Reason: "It was found, completed and equal.", From: story.Operation.State, To: story.Operation.State,
		Check: recon.Check{Next: s.clock.now().Add(15 * time.Minute), Looks: 3}, Findings: raise}
	for _, f := range end {
		d.Ends = append(d.Ends, f.Fingerprint())
	}
	_, err := s.led.Record(s.Context(), ledger.Batch{
		Hold: s.hold, Now: s.clock.now(), Decisions: []recon.Decision{d}, Versions: map[recon.OperationID]int64{id: story.Operation.Version},
	})
	if err != nil {
		s.Fatal(err)
	}
}

// unresolved records an operation with an unresolved finding that is told by now.
func (s *stand) unresolved(name string) (recon.Operation, recon.Finding) {
	s.Helper()
	o := s.lost(name)
	f := finding(o, recon.FindUnresolved)
	s.pass(o.ID, []recon.Finding{f})
	s.plan()
	s.wait(5 * time.Second) // whether others open with it
	s.plan()
	return o, f
}

// plan plans who is told.
func (s *stand) plan() {
	s.Helper()
	p := escalation.Planner{Desk: s.led, Policy: s.policy, Now: s.clock.now, Log: slog.New(slog.NewTextHandler(s.log, nil))}
	if _, err := p.Pass(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// wait lets time go by.
func (s *stand) wait(d time.Duration) {
	s.Helper()
	if err := s.clock.wait(s.Context(), d); err != nil {
		s.Fatal(err)
	}
}

// run plans, and delivers what is due.
func (s *stand) run() {
	s.Helper()
	s.plan()
	if _, err := s.deliver.Pass(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// after lets time go by, plans, and delivers what is due.
func (s *stand) after(d time.Duration) {
	s.Helper()
	s.wait(d)
	s.run()
}

// calls gives the outcomes of a method's requests, in order.
func (s *stand) calls(method string) string {
	var list []string
	for _, c := range s.slack.Calls() {
		if c.Method == method {
			list = append(list, c.Outcome)
		}
	}
	return strings.Join(list, " ")
}

// want compares what a test saw with what it should have seen.
func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (s *stand) snapshot() ledger.Snapshot {
	s.Helper()
	snap, err := s.led.Snapshot(s.Context(), s.clock.now())
	if err != nil {
		s.Fatal(err)
	}
	return snap
}

func lostAnswer() slacktest.Fault {
	return slacktest.Fault{Method: "chat.postMessage", LoseAnswer: true}
}

func tooMany(after time.Duration) slacktest.Fault {
	return slacktest.Fault{Method: "chat.postMessage", Status: http.StatusTooManyRequests, RetryAfter: after}
}
