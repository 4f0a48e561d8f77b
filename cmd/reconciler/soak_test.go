//go:build e2e

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// soakVariable says how long the soak of replicas goes on, such as 10m; without it a slice
// is lived through that fits among the other tests.
const soakVariable = "SOAK"

const (
	soakReplicas = 3
	soakSources  = 5
	// soakSettles bounds the time until all is concluded once the faults are over: a lease
	// of a minute, a tick, and what a busy machine adds.
	soakSettles = 4 * time.Minute
)

// fate is what truly happened to an operation of the soak.
type fate int

const (
	never     fate = iota // nothing was sent, and nobody knows
	happened              // the effect was made and the answer lost
	confirmed             // the effect was made and the answer came
	differs               // an effect of another amount was made and the answer lost
)

// soak is a ledger on a server of its own, replicas of the real program on it, five fake
// Stripes, a fake Slack, and what truly happened.
type soak struct {
	*testing.T
	dir      string
	pair     *pair
	url      string
	stripes  []*stripetest.Server
	slack    *slacktest.Server
	replicas []*replica
	whole    bool // there is time to stop a process for longer than its lease, and for events whose taker died

	mu      sync.Mutex // guards what follows
	truth   map[recon.OperationID]fate
	acked   map[string]bool // events that a replica took
	faults  map[string]int
	refused int // deliveries that a replica refused and another one took
}

// replica is one process of the real program, with its configuration.
type replica struct {
	config, public, private string
	binary                  string // of a program with another clock; empty: this one
	log                     *os.File
	program                 *program
}

// Three replicas share a ledger and five sources, while processes are killed and stopped,
// connections are cut, replies are lost, and the database is restarted or lost with its
// machine, so that the synchronous standby takes over. In a whole soak one of them believes
// that it is ten minutes later. Whatever the order: no conclusion is wrong or made twice, no
// intent and no event that was taken is lost, nobody is told twice without a mark, and the
// work goes on.
func TestReplicasSurviveWhateverDies(t *testing.T) {
	t.Parallel()
	length := 15 * time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
	}
	s := newSoak(t, length >= 5*time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { s.act(ctx) })
	s.harm(length)
	stop()
	work.Wait()
	for _, stripe := range s.stripes {
		stripe.ClearFaults()
	}
	s.settle()
	s.judge()
}

func newSoak(t *testing.T, whole bool) *soak {
	t.Helper()
	dir, err := os.MkdirTemp(localpg.ReachableTemp(), "soak")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  // of no use to anybody
	if err := os.Chmod(dir, 0o755); err != nil { // the server runs as another user where this one is root
		t.Fatal(err)
	}
	s := &soak{T: t, dir: dir, whole: whole, truth: map[recon.OperationID]fate{}, acked: map[string]bool{}, faults: map[string]int{}}
	s.pair = newPair(t, dir)
	s.url = s.pair.url()
	if err := migrations.Up(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	for n := range soakSources {
		stripe, err := stripetest.Start(stripetest.Options{
			Now: time.Now, Seed: uint64(n), Accounts: []stripetest.Account{{ID: fmt.Sprintf("acct_%d", n), Mode: "live", Key: "sk_live_TESTONLY"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stripe.Close)
		s.stripes = append(s.stripes, stripe)
	}
	if s.slack, err = slacktest.Start(slacktest.Options{Token: "xoxb-TESTONLY"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.slack.Close)
	for n := range soakReplicas {
		r := s.newReplica(n)
		s.replicas = append(s.replicas, r)
		if whole && n == 0 {
			r.binary = buildAhead(t, dir)
		}
		s.start(r)
	}
	for _, r := range s.replicas {
		s.awaitReady(r)
	}
	return s
}

// newReplica writes the configuration of one replica. They differ in their addresses alone.
func (s *soak) newReplica(n int) *replica {
	s.Helper()
	public, private := loopback.FreeAddress(s.T), loopback.FreeAddress(s.T)
	var text strings.Builder
	fmt.Fprintf(&text, "database: {url: %q}\nlisten: {public: %q, private: %q}\nschedule: {audit: off}\nsources:\n", s.url, public, private)
	for i, stripe := range s.stripes {
		fmt.Fprintf(&text, `  - {name: stripe-%d, kind: stripe, settings: {account: acct_%d, api_key: "${KEY}", api_url: %q, marker: op_id, webhook: {secrets: ["${HOOK}"]}}}`+"\n",
			i, i, stripe.URL())
	}
	text.WriteString("actions:\n")
	for i := range s.stripes {
		fmt.Fprintf(&text, "  refund.of%d: {source: stripe-%d, effect: refund, class: irreversible, check_after: 1s, lease_max: 10s}\n", i, i)
	}
	fmt.Fprintf(&text, `escalation: {destinations: [{name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: %q}}]}`+"\n", s.slack.URL())
	r := &replica{config: filepath.Join(s.dir, fmt.Sprintf("replica-%d.yaml", n)), public: "http://" + public, private: "http://" + private}
	err := os.WriteFile(r.config, []byte(text.String()), 0o600)
	if err != nil {
		s.Fatal(err)
	}
	if r.log, err = os.Create(strings.TrimSuffix(r.config, ".yaml") + ".log"); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = r.log.Close() }) // it was written by others
	return r
}

func (s *soak) start(r *replica) {
	s.Helper()
	r.program = newProgram(s.T, r.log, "serve", "--config", r.config)
	if r.binary != "" {
		r.program.cmd.Path = r.binary
	}
	r.program.start()
}

// awaitReady waits until the policies are in force: a listener alone answers before, and what
// is opened then is rejected.
func (s *soak) awaitReady(r *replica) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(r.private + "/readyz")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
	s.Fatalf("a replica does not get ready:\n%s", s.tail(r))
}

// act opens operations and sends some of them, as agents do, until ctx ends.
func (s *soak) act(ctx context.Context) {
	for n := 0; ctx.Err() == nil; {
		l, err := ledger.Open(ctx, ledger.Options{URL: s.url})
		if err != nil {
			time.Sleep(100 * time.Millisecond) // the database is being restarted
			continue
		}
		for ctx.Err() == nil && err == nil {
			var recorded bool
			if recorded, err = s.actOnce(ctx, l, n); recorded {
				n++
			}
			time.Sleep(50 * time.Millisecond)
		}
		l.Close()
	}
}

// actOnce is the life of one operation. An opening that the ledger did not answer is not
// recorded and is asked for again, whether it was stored or not; a claim that it did not answer
// was not sent.
func (s *soak) actOnce(ctx context.Context, l *ledger.Ledger, n int) (recorded bool, err error) {
	i, id := n%soakSources, recon.OperationID(fmt.Sprintf("op_%05d", n))
	amount := int64(1000 + n)
	opened, err := l.OpenOperation(ctx, ledger.OpenRequest{
		ID: id, Action: fmt.Sprintf("refund.of%d", i), Target: "order:" + string(id), Parent: "ch_" + string(id), Amount: amount, Currency: "EUR",
		Request: json.RawMessage(fmt.Sprintf(`{"amount":%d}`, amount)),
	})
	if err != nil {
		return false, err
	}
	if opened.Verdict != "new" && opened.Verdict != "existing" {
		s.Errorf("%s was not recorded: %s: %s", id, opened.Verdict, opened.Reason)
		return true, nil
	}
	s.note(id, never)
	claim, err := l.Claim(ctx, ledger.ClaimRequest{OperationID: id, Holder: "agent"})
	if err != nil || !claim.Claimed {
		return true, err
	}
	of := fate(1 + rand.N(2))
	switch {
	case n%12 == 7:
		of = differs
	case n%10 == 3:
		of = never
	}
	if of == never {
		return true, nil // the agent dies with its lease
	}
	if of == differs {
		amount++
	}
	s.note(id, of)
	refund, err := s.stripes[i].AddRefund(stripetest.Refund{
		Account: fmt.Sprintf("acct_%d", i), Mode: "live", Charge: "ch_" + string(id), Amount: amount, Currency: "eur", Key: claim.Key,
		Created: time.Now(), Metadata: map[string]string{"op_id": string(id)},
	})
	if err != nil {
		return true, err
	}
	if n%3 == 0 {
		s.deliver(ctx, i, refund)
	}
	finish := ledger.FinishRequest{OperationID: id, Token: claim.Token, Class: recon.ClassIndeterminate}
	if of == confirmed {
		finish.Class, finish.EffectID = recon.ClassSucceeded, refund.ID
	}
	_, err = l.Finish(ctx, finish)
	return true, err
}

func (s *soak) note(id recon.OperationID, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truth[id] = f
}

// deliver posts an event until a replica takes it, as a provider does.
func (s *soak) deliver(ctx context.Context, i int, r stripetest.Refund) {
	id := "evt_" + r.ID
	body := fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","type":"refund.created","livemode":true,"created":%d,
		"request":{"id":"req_1","idempotency_key":%q},
		"data":{"object":{"id":%q,"object":"refund","amount":%d,"currency":"eur","status":"succeeded","created":%d,
		"charge":%q,"payment_intent":null,"reason":null,"balance_transaction":null,"metadata":{"op_id":%q}}}}`,
		id, time.Now().Unix(), r.Key, r.ID, r.Amount, r.Created.Unix(), r.Charge, r.Metadata["op_id"])
	client := &http.Client{Timeout: 2 * time.Second}
	for try := 0; ctx.Err() == nil; try++ {
		to := s.replicas[try%len(s.replicas)]
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/webhooks/stripe-%d", to.public, i), bytes.NewReader(body))
		if err != nil {
			s.Error(err)
			return
		}
		req.Header.Set("Stripe-Signature", webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: "whsec_TESTONLY", Timestamp: time.Now()}).Header)
		resp, err := client.Do(req)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		_ = resp.Body.Close()
		s.answered(id, resp.StatusCode)
		if resp.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answered notes how a replica answered a delivery.
func (s *soak) answered(event string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch status {
	case http.StatusOK:
		s.acked[event] = true
	case http.StatusBadRequest: // by the clock of the one that is ahead it is too old
		s.refused++
	}
}

// harm does one thing after another to replicas, connections and databases until the time
// is over, and every kind at least once. A stop outlasts the lease where there is time for
// it.
func (s *soak) harm(length time.Duration) {
	kinds := []struct {
		name string
		do   func(*replica)
	}{
		{"kill -9", func(r *replica) { r.program.kill(); s.start(r) }},
		{"replies of the database lost", func(*replica) { s.pair.primary.wire.deafen() }},
		{"loss of the primary", func(*replica) { s.pair.lose() }},
		{"connections cut", func(*replica) { s.pair.primary.wire.cut() }},
		{"answers of a provider lost", func(*replica) {
			s.stripes[rand.N(len(s.stripes))].Script(stripetest.Fault{Kind: stripetest.Closed, Times: 1})
		}},
		{"restart of the database", func(*replica) { s.pair.restart() }},
		{"SIGSTOP", s.pauseReplica},
	}
	pause := time.Second
	if s.whole {
		pause = 2 * time.Second
	}
	for n, began := 0, time.Now(); n < len(kinds) || time.Since(began) < length; n++ {
		time.Sleep(pause)
		kind := kinds[n%len(kinds)]
		s.faults[kind.name]++
		kind.do(s.replicas[rand.N(len(s.replicas))])
	}
}

// pauseReplica stops a replica, for longer than its lease where there is time for that.
func (s *soak) pauseReplica(r *replica) {
	r.program.signal(syscall.SIGSTOP)
	span := 2 * time.Second
	if s.whole {
		span = 75 * time.Second
	}
	time.Sleep(span)
	r.program.signal(syscall.SIGCONT)
}

// settle waits until everything that can be concluded is.
func (s *soak) settle() {
	s.Helper()
	db, err := pgxpool.New(s.Context(), s.url)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	open := -1
	for time.Since(began) < soakSettles {
		if open = s.unsettled(db); open == 0 {
			s.Logf("settled %s after the last fault", time.Since(began).Round(time.Second))
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	for n, r := range s.replicas {
		s.Logf("replica %d:\n%s", n, s.tail(r))
	}
	s.Fatalf("%d operations or notices are not settled after %s", open, soakSettles)
}

// tail is the end of a replica's log.
func (s *soak) tail(r *replica) string {
	text, err := os.ReadFile(r.log.Name())
	if err != nil {
		s.Error(err)
	}
	return string(text[max(0, len(text)-4000):])
}

// unsettled counts operations whose effect exists and that are not concluded, findings
// that nobody was told of and, in a whole soak, events that nobody took in.
func (s *soak) unsettled(db *pgxpool.Pool) int {
	s.Helper()
	states := s.states(db)
	open := 0
	for id, f := range s.truth {
		if (f == happened || f == confirmed) && states[id] != recon.Succeeded || f == differs && states[id] != recon.ManualReview {
			open++
		}
	}
	var untold int
	err := db.QueryRow(s.Context(), `SELECT (SELECT count(*) FROM reconciler.findings WHERE planned_version <> version)
		+ (SELECT count(*) FROM reconciler.notices WHERE state = 'due')
		+ (SELECT count(*) FROM reconciler.events WHERE $1 AND state IN ('new', 'waiting'))`, s.whole).Scan(&untold)
	if err != nil {
		s.Fatal(err)
	}
	return open + untold
}

func (s *soak) states(db *pgxpool.Pool) map[recon.OperationID]recon.State {
	s.Helper()
	rows, err := db.Query(s.Context(), `SELECT operation_id, state FROM reconciler.operations`)
	if err != nil {
		s.Fatal(err)
	}
	states := map[recon.OperationID]recon.State{}
	var id, state string
	_, err = pgx.ForEachRow(rows, []any{&id, &state}, func() error {
		states[recon.OperationID(id)] = recon.State(state)
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return states
}

// judge holds the ledger, the inbox and Slack against what truly happened, and prints the
// counts.
func (s *soak) judge() {
	s.Helper()
	db, err := pgxpool.New(s.Context(), s.url)
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	wrong, lost := 0, 0
	count := func(n *int) func(string, ...any) {
		return func(format string, args ...any) {
			*n++
			s.Errorf(format, args...)
		}
	}
	s.judgeOperations(db, count(&wrong), count(&lost))
	stored := map[string]bool{}
	for _, id := range s.column(db, `SELECT id FROM reconciler.events`) {
		stored[id] = true
	}
	for id := range s.acked {
		if !stored[id] {
			count(&lost)("event %s was acknowledged and is lost", id)
		}
	}
	told := s.toldOf(count(&wrong))
	for n, stripe := range s.stripes {
		if stripe.Writes() != 0 {
			count(&wrong)("%d writes at Stripe %d", stripe.Writes(), n)
		}
	}
	s.verify(count(&wrong))
	if len(s.truth) == 0 || len(s.acked) == 0 || told == 0 || s.whole && s.refused == 0 {
		s.Errorf("too little happened to hold anything")
	}
	s.print(db, told, wrong, lost)
}

// judgeOperations holds what is said of operations against what happened.
func (s *soak) judgeOperations(db *pgxpool.Pool, wrong, lost func(string, ...any)) {
	s.Helper()
	states := s.states(db)
	for id, f := range s.truth {
		state, there := states[id]
		switch {
		case !there:
			lost("%s was recorded and is lost", id)
		case f == never && (state == recon.Succeeded || state == recon.Failed):
			wrong("%s never happened and is %s", id, state)
		}
	}
	for _, id := range s.column(db, `SELECT operation_id FROM reconciler.journal WHERE kind IN ('decision', 'event', 'attempt_finished')
		AND body::jsonb ->> 'to' = 'succeeded' AND body::jsonb ->> 'from' <> 'succeeded' GROUP BY 1 HAVING count(*) > 1`) {
		wrong("%s was concluded twice", id)
	}
}

// print tells what was lived through.
func (s *soak) print(db *pgxpool.Pool, told, wrong, lost int) {
	s.Helper()
	var longest float64
	err := db.QueryRow(s.Context(), `SELECT coalesce(max(extract(epoch FROM o.closed_at - o.sent_at)), 0)::float8 FROM reconciler.operations o WHERE o.state = 'succeeded'`).Scan(&longest)
	if err != nil {
		s.Fatal(err)
	}
	var table strings.Builder
	row := func(what string, n int) { fmt.Fprintf(&table, "\n%8d  %s", n, what) }
	row("operations", len(s.truth))
	row("events taken", len(s.acked))
	row("events that the clock of one replica refused", s.refused)
	row("differences told", told)
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		row("× "+kind, s.faults[kind])
	}
	row("s at most from sending to success", int(longest))
	row("wrong", wrong)
	row("lost", lost)
	s.Log(table.String())
}

// toldOf counts the differences that somebody was told of. Each has a message of its own
// once at most, unless that is marked; a crowd of them is another message, which names
// several.
func (s *soak) toldOf(fail func(string, ...any)) int {
	alone, told := map[recon.OperationID]int{}, map[recon.OperationID]bool{}
	for _, m := range s.slack.Messages("payments-recon") {
		text := m.Text + string(m.Blocks)
		var named []recon.OperationID
		for id, f := range s.truth {
			if f == differs && strings.Contains(text, string(id)) {
				named = append(named, id)
				told[id] = true
			}
		}
		if len(named) == 1 && m.Thread == "" && !strings.Contains(text, "Possibly a repeat") {
			alone[named[0]]++
		}
	}
	for id, n := range alone {
		if n > 1 {
			fail("%s was told %d times without a mark", id, n)
		}
	}
	return len(told)
}

func (s *soak) verify(fail func(string, ...any)) {
	s.Helper()
	l, err := ledger.Open(s.Context(), ledger.Options{URL: s.url})
	if err != nil {
		s.Fatal(err)
	}
	defer l.Close()
	v, err := l.Verify(s.Context())
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Fatal(err)
	}
	if len(v.Broken) > 0 {
		fail("broken chains: %+v", v.Broken)
	}
}

func (s *soak) column(db *pgxpool.Pool, sql string) []string {
	s.Helper()
	rows, err := db.Query(s.Context(), sql)
	if err != nil {
		s.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return all
}
