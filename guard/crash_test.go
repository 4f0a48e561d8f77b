package guard_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// The failpoints of a worker process, in the order in which it passes them.
const (
	beforeOpen   = "before the opening"
	afterOpen    = "between opening and claim"
	afterClaim   = "between claim and call"
	afterAnswer  = "between the call's answer and the record"
	afterFinish  = "after the record"
	stopsClaimed = "stops between claim and call" // SIGSTOP
	nowhere      = "nowhere"
)

const workerVariable = "GUARD_TEST_WORKER"

// errand is what a worker process is told to do.
type errand struct {
	Ledger, Stripe string
	Failpoint      string
	Barrier        bool // wait for a line on standard input before the opening
}

// TestMain is also the worker process: a real one, which can be killed.
func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		os.Exit(work(text))
	}
	os.Exit(m.Run())
}

// work makes one guarded refund and prints the answer.
func work(text string) int {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := ledger.Open(ctx, ledger.Options{URL: e.Ledger, MaxConns: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer l.Close()
	if e.Barrier {
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	g := &guard.Guard{Ledger: fragile{l, e.Failpoint}, Holder: fmt.Sprint("pid-", os.Getpid())}
	at(e.Failpoint, beforeOpen)
	a, err := g.Do(ctx, guard.Call{Intent: intent("1"), Send: refund(e.Stripe)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	at(e.Failpoint, afterFinish)
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		return 2
	}
	return 0
}

// at ends this process as kill -9 does, if it is told to end here.
func at(failpoint, here string) {
	if failpoint == here {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// fragile is a ledger whose process dies between its calls.
type fragile struct {
	guard.Ledger
	failpoint string
}

func (f fragile) OpenOperation(ctx context.Context, r ledger.OpenRequest) (ledger.OpenAnswer, error) {
	a, err := f.Ledger.OpenOperation(ctx, r)
	at(f.failpoint, afterOpen)
	return a, err
}

func (f fragile) Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.ClaimAnswer, error) {
	a, err := f.Ledger.Claim(ctx, r)
	at(f.failpoint, afterClaim)
	if f.failpoint == stopsClaimed && a.Claimed {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	return a, err
}

func (f fragile) Finish(ctx context.Context, r ledger.FinishRequest) (ledger.FinishAnswer, error) {
	at(f.failpoint, afterAnswer)
	return f.Ledger.Finish(ctx, r)
}

// refund sends with the real client.
func refund(url string) guard.Send {
	client := stripego.NewClient("sk_live_TESTONLY", stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(url), MaxNetworkRetries: stripego.Int64(0), HTTPClient: &http.Client{Transport: &attempt.Transport{}},
		LeveledLogger: &stripego.LeveledLogger{}})))
	return func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		ctx, sent := stripe.Begin(ctx, stripe.Sending{Key: a.Key, Marker: a.Marker.Name, Reference: a.Marker.Value, InDoubt: a.InDoubt})
		p := &stripego.RefundCreateParams{Charge: stripego.String("ch_1"), Amount: stripego.Int64(4200)}
		p.SetIdempotencyKey(a.Key)
		p.AddMetadata(a.Marker.Name, a.Marker.Value)
		_, _ = client.V1Refunds.Create(ctx, p)
		return sent.Report()
	}
}

// shop is a ledger, a provider and a sweep on one simulated clock, for worker processes.
type shop struct {
	*stand
	url   string
	srv   *stripetest.Server
	sweep *sweep.Sweep
}

func newShop(t *testing.T, repeat recon.Repeat) *shop {
	t.Helper()
	s := &shop{stand: &stand{t: t, clock: &clock{}}, url: pgtest.URL(t, pgtest.SimulatedTime(start))}
	var err error
	if s.ledger, err = ledger.Open(t.Context(), ledger.Options{URL: s.url, MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ledger.Close)
	s.srv, err = stripetest.Start(stripetest.Options{Now: s.clock.now, Seed: 1,
		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY", ReadKey: "rk_live_TESTONLY"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.srv.Close)
	if _, err := s.srv.AddCharge(stripetest.Charge{ID: "ch_1", Account: "acct_1", Mode: "live", Amount: 50_000, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
	source, err := stripe.New("shop", stripe.Settings{System: "stripe", Account: "acct_1", Mode: "live", Marker: "operation_id",
		APIURL: s.srv.URL(), APIKey: recon.NewSecret("rk_live_TESTONLY"), PerSecond: 1_000_000}, stripe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sheet, p := source.Sheet(), repeatable()
	p.Repeat, p.OnNeverSent = repeat, recon.NeverSentFail
	p.System, p.Accounts, p.Marker, p.RepeatAnswer = sheet.System, sheet.Accounts, sheet.Marker, sheet.RepeatAnswer
	if _, err := s.ledger.ApplyPolicies(t.Context(), []recon.Policy{p}, start); err != nil {
		t.Fatal(err)
	}
	s.sweep = &sweep.Sweep{Ledger: s.ledger, Source: source, Holder: "test"}
	return s
}

// worker is a process that makes the refund.
type worker struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder
}

func (s *shop) start(e errand) *worker {
	s.t.Helper()
	e.Ledger, e.Stripe = s.url, s.srv.URL()
	text, err := json.Marshal(e)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &worker{t: s.t, cmd: exec.Command(os.Args[0]), err: &strings.Builder{}}
	w.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	w.cmd.Stderr = w.err
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if w.cmd.ProcessState == nil { // the test failed before it waited
			_ = w.cmd.Process.Kill()
			_ = w.cmd.Wait()
		}
	})
	return w
}

// answer waits for the process to end by itself.
func (w *worker) answer() guard.Answer {
	w.t.Helper()
	var a guard.Answer
	err := json.NewDecoder(w.out).Decode(&a)
	if waited := w.cmd.Wait(); err != nil || waited != nil {
		w.t.Fatalf("the worker: %v, %v\n%s", err, waited, w.err)
	}
	return a
}

// killed waits for a process that must die by kill -9.
func (w *worker) killed() {
	w.t.Helper()
	_ = w.cmd.Wait()
	status, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		w.t.Fatalf("the worker was not killed: %v\n%s", w.cmd.ProcessState, w.err)
	}
}

// settle lets time pass and sweeps until the operation needs nobody any more.
func (s *shop) settle() recon.Operation {
	s.t.Helper()
	for range 30 {
		s.advance(5 * time.Minute)
		if _, err := s.sweep.Run(s.t.Context(), sweep.Options{Now: s.clock.now, Tick: s.clock.now().Format(time.RFC3339)}); err != nil {
			s.t.Fatal(err)
		}
		ops, err := s.ledger.Operations(s.t.Context(), ledger.OperationFilter{})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(ops) != 1 {
			s.t.Fatalf("%d operations", len(ops))
		}
		if o := ops[0]; !o.State.Open() || o.State == recon.ManualReview {
			return o
		}
	}
	s.t.Fatal("the operation is still open after two hours and a half")
	return recon.Operation{}
}

// check holds the ledger against the provider.
func (s *shop) check(o recon.Operation, want recon.State, refunds int) {
	s.t.Helper()
	made := s.srv.Refunds()
	if o.State != want || len(made) != refunds {
		s.t.Errorf("the operation is %s with %d refunds, want %s with %d", o.State, len(made), want, refunds)
	}
	if o.State == recon.Succeeded && o.EffectID != made[0].ID {
		s.t.Errorf("effect %s, want %s", o.EffectID, made[0].ID)
	}
	if result, err := s.ledger.Verify(s.t.Context()); err != nil || len(result.Broken) != 0 {
		s.t.Errorf("chains: %+v, %v", result, err)
	}
}

func TestAProcessThatIsKilledAnywhereAndResumedRefundsOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{beforeOpen, afterOpen, afterClaim, afterAnswer, afterFinish} {
		for _, later := range []time.Duration{0, 2 * time.Minute} {
			t.Run(fmt.Sprintf("killed %s, resumed %s later", point, later), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, recon.RepeatSameKey)
				s.start(errand{Failpoint: point}).killed()
				if later > 0 {
					s.advance(later)
				}
				a := s.start(errand{Failpoint: nowhere}).answer()
				leased := later == 0 && (point == afterClaim || point == afterAnswer)
				if leased && (a.Verdict != guard.UnknownReconciliationRequired || a.RetryAfter <= 0) || !leased && a.Verdict != guard.Succeeded {
					t.Errorf("resumed: %+v", a)
				}
				want := recon.Succeeded
				refunds := 1
				if leased && point == afterClaim {
					want, refunds = recon.ManualReview, 0 // nobody sends it again, and it is absent
				}
				s.check(s.settle(), want, refunds)
			})
		}
	}
}

func TestAProcessThatIsKilledAndNotRepeatedIsFoundOut(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]struct {
		state   recon.State
		refunds int
	}{
		afterOpen:   {recon.Failed, 0},       // never sent, and the policy says so
		afterClaim:  {recon.ManualReview, 0}, // absent by evidence
		afterAnswer: {recon.Succeeded, 1},
		afterFinish: {recon.Succeeded, 1},
	} {
		t.Run("killed "+point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, recon.RepeatNever)
			s.start(errand{Failpoint: point}).killed()
			s.check(s.settle(), want.state, want.refunds)
		})
	}
}

func TestTwoProcessesOnOneCaseRefundOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, recon.RepeatSameKey)
	workers := make([]*worker, 4)
	for i := range workers {
		workers[i] = s.start(errand{Barrier: true, Failpoint: nowhere})
		if line, err := workers[i].out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v\n%s", line, err, workers[i].err)
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	for _, w := range workers {
		a := w.answer()
		sent += a.Attempts
		if a.Verdict != guard.Succeeded && a.Verdict != guard.UnknownReconciliationRequired {
			t.Errorf("answer %+v", a)
		}
	}
	if sent != 1 || s.srv.Writes() != 1 {
		t.Errorf("%d attempts, %d requests, want one", sent, s.srv.Writes())
	}
	s.check(s.settle(), recon.Succeeded, 1)
}

func TestB29_AProcessThatWasStoppedPastItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, recon.RepeatSameKey)
	sleeper := s.start(errand{Failpoint: stopsClaimed})
	sleeper.awaitStopped()
	s.advance(61 * time.Second)
	second := s.start(errand{Failpoint: nowhere}).answer()
	if second.Verdict != guard.Succeeded || second.Attempts != 1 {
		t.Errorf("the second one: %+v", second)
	}
	if err := sleeper.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	late := sleeper.answer()
	if late.Verdict != guard.Succeeded || late.State != recon.Succeeded {
		t.Errorf("the late one: %+v", late)
	}
	o := s.settle()
	s.check(o, recon.Succeeded, 1)
	diff(t, "journal", []string{"opened", "attempt_started", "decision", "attempt_started", "attempt_finished", "attempt_finished"},
		s.kinds(o.ID)[:6])
}

// awaitStopped waits until the kernel says that the process is stopped.
func (w *worker) awaitStopped() {
	w.t.Helper()
	for range 3000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
		if err != nil {
			w.t.Fatalf("%v\n%s", err, w.err)
		}
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest, "T") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("the worker does not stop")
}

func TestPostgreSQLRestartedBetweenClaimAndFinishLosesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(localpg.ReachableTemp(), "guard-"+strings.ToLower(rand.Text()[:12]))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server := startServer(t, dir)
	if err := server.CreateDatabase(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	url := server.URL("shop")
	if err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if _, err := l.ApplyPolicies(t.Context(), []recon.Policy{repeatable()}, time.Now()); err != nil {
		t.Fatal(err)
	}
	g := &guard.Guard{Ledger: l, Holder: "test"}
	call := guard.Call{Intent: intent("1"), Send: func(context.Context, guard.Attempt) recon.AttemptReport {
		stop(t, server)
		server = startServer(t, dir)
		return done
	}}
	a, err := g.Do(t.Context(), call)
	if err != nil || a.Verdict != guard.Succeeded {
		t.Errorf("answer %+v, %v", a, err)
	}
	call.Send = func(context.Context, guard.Attempt) recon.AttemptReport { t.Error("sent again"); return done }
	if again, err := g.Do(t.Context(), call); err != nil || again.Operation != a.Operation || again.Verdict != guard.Succeeded {
		t.Errorf("again: %+v, %v", again, err)
	}
	stop(t, server)
}

func startServer(t *testing.T, dir string) *localpg.Server {
	t.Helper()
	s, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

// stop may be called twice: the second time does nothing.
func stop(t *testing.T, s *localpg.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}
