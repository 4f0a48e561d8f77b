package agents_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	setupLimit = 5 * time.Minute
	runLimit   = time.Minute
)

// tool is one of the three programs, ready to run.
type tool func(t *testing.T) []string

var tools = map[string]tool{"Go": goTool, "Python": pythonTool, "TypeScript": typeScriptTool}

func TestTheToolOfEveryLanguageRefundsOnce(t *testing.T) {
	t.Parallel()
	closed := func(executed bool) stripetest.Fault {
		return stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: executed}
	}
	for name, test := range map[string]struct {
		never   bool // policy: no repeat
		faults  []stripetest.Fault
		amount  string
		verdict string
		state   recon.State
		refunds int
		sends   int
	}{
		"a refund": {false, nil, "1500", "succeeded", recon.Succeeded, 1, 1},
		"an answer that is lost is asked for again": {false, []stripetest.Fault{closed(true)}, "1500", "succeeded", recon.Succeeded, 1, 2},
		"a request that is lost is sent again":      {false, []stripetest.Fault{closed(false)}, "1500", "succeeded", recon.Succeeded, 1, 2},
		"a lost answer, and no repeat is allowed": {true, []stripetest.Fault{closed(true)}, "1500", "unknown_reconciliation_required",
			recon.Unknown, 1, 1},
		"a stored error": {false, []stripetest.Fault{{Kind: stripetest.ServerError, Method: "POST", Executed: true}}, "1500",
			"unknown_reconciliation_required", recon.Unknown, 1, 1},
		"a page of a proxy": {true, []stripetest.Fault{{Kind: stripetest.ProxyPage, Status: 401, Method: "POST", Executed: true}}, "1500",
			"unknown_reconciliation_required", recon.Unknown, 1, 1},
		"a refusal": {false, nil, "9000", "failed_safe_to_retry", recon.Failed, 0, 1},
		"a limit, then a refund": {false, []stripetest.Fault{{Kind: stripetest.RateLimited, Method: "POST"}}, "1500", "succeeded",
			recon.Succeeded, 1, 2},
		"a limit after a lost answer": {false, []stripetest.Fault{closed(true), {Kind: stripetest.RateLimited, Method: "POST"}}, "1500",
			"succeeded", recon.Succeeded, 1, 3},
	} {
		for language, prepare := range tools {
			t.Run(language+": "+name, func(t *testing.T) {
				t.Parallel()
				s := newStand(t, prepare(t), test.never)
				s.srv.Script(test.faults...)
				told := s.run(test.amount)
				if told.Verdict != test.verdict {
					t.Errorf("told %+v, want %s", told, test.verdict)
				}
				op := s.operation()
				if op.State != test.state || string(op.ID) != told.OperationID {
					t.Errorf("operation %s is %s, want %s as told %+v", op.ID, op.State, test.state, told)
				}
				if refunds, sends := len(s.srv.Refunds()), s.srv.Writes(); refunds != test.refunds || sends != test.sends {
					t.Errorf("%d refunds by %d requests, want %d by %d", refunds, sends, test.refunds, test.sends)
				}
				s.checkSent(op)
				again := s.run(test.amount) // the run is resumed
				if again.OperationID != told.OperationID || again.Verdict != test.verdict || s.srv.Writes() != test.sends {
					t.Errorf("run again: %+v after %d requests", again, s.srv.Writes())
				}
			})
		}
	}
}

func TestAChangedAmountIsRefusedInEveryLanguage(t *testing.T) {
	t.Parallel()
	for language, prepare := range tools {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, prepare(t), false)
			s.run("1500")
			if told := s.run("1600"); told.Verdict != "conflict" && told.Verdict != "rejected_by_policy" || s.srv.Writes() != 1 {
				t.Errorf("told %+v after %d requests", told, s.srv.Writes())
			}
		})
	}
}

// PostgreSQL answers as if all were well where somebody ends the wait of a commit.
func TestNothingIsSentOnAnIntentThatIsPerhapsNotOnTheStandby(t *testing.T) {
	t.Parallel()
	for language, prepare := range tools {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			server := pgtest.WaitForStandby(t)
			s := newStandAt(t, server.URL, prepare(t), false)
			fails := make(chan error, 1)
			go func() {
				told, err := s.try("1500")
				if err == nil && told.Verdict != "unknown_reconciliation_required" {
					err = fmt.Errorf("told %+v", told)
				}
				fails <- err
			}()
			server.End("pg_cancel_backend")
			if err := <-fails; err != nil && !strings.Contains(err.Error(), "standby") || s.srv.Writes() != 0 {
				t.Errorf("%d requests; %v", s.srv.Writes(), err)
			}
		})
	}
}

// stand is a ledger, a provider and one tool.
type stand struct {
	t      *testing.T
	tool   []string
	srv    *stripetest.Server
	ledger *ledger.Ledger
	url    string
}

func newStand(t *testing.T, tool []string, never bool) *stand {
	t.Helper()
	return newStandAt(t, pgtest.URL(t), tool, never)
}

func newStandAt(t *testing.T, url string, tool []string, never bool) *stand {
	t.Helper()
	s := &stand{t: t, tool: tool, url: url}
	var err error
	if s.ledger, err = ledger.Open(t.Context(), ledger.Options{URL: s.url, MaxConns: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ledger.Close)
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class = "refund.create", "stripe-main", "refund", recon.Irreversible
	p.Repeat, p.KeyLifetime, p.RepeatAnswer = recon.RepeatSameKey, recon.Duration(24*time.Hour), true
	p.Backoff = recon.Backoff{Base: recon.Duration(10 * time.Millisecond), Max: recon.Duration(10 * time.Millisecond)}
	p.ResultFields, p.Accounts = []string{"id", "status"}, []recon.Account{{Account: "acct_1", Mode: "live"}}
	if never {
		p.Repeat = recon.RepeatNever
	}
	if _, err := s.ledger.ApplyPolicies(t.Context(), []recon.Policy{p}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.srv, err = stripetest.Start(stripetest.Options{Now: time.Now, Seed: 1,
		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.srv.Close)
	if _, err := s.srv.AddCharge(stripetest.Charge{ID: "ch_1", Account: "acct_1", Mode: "live", Amount: 5000, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// told is what a tool prints.
type told struct {
	OperationID string `json:"operation_id"`
	Verdict     string `json:"verdict"`
}

func (s *stand) run(amount string) told {
	s.t.Helper()
	got, err := s.try(amount)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// try runs the tool. Its error says what the tool said.
func (s *stand) try(amount string) (got told, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), runLimit)
	defer cancel()
	args := append(s.tool[1:len(s.tool):len(s.tool)], "case-9", "4417", "ch_1", amount, "EUR")
	cmd := exec.CommandContext(ctx, s.tool[0], args...)
	cmd.Env = append(os.Environ(), "RECONCILER_DATABASE_URL="+s.url, "STRIPE_API_URL="+s.srv.URL(), "STRIPE_API_KEY=sk_live_TESTONLY")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out, complaints.Bytes())
	}
	return got, err
}

func (s *stand) operation() recon.Operation {
	s.t.Helper()
	ops, err := s.ledger.Operations(s.t.Context(), ledger.OperationFilter{})
	if err != nil || len(ops) != 1 {
		s.t.Fatalf("%d operations, %v", len(ops), err)
	}
	return ops[0]
}

// checkSent holds every request to the operation's key and marker.
func (s *stand) checkSent(op recon.Operation) {
	s.t.Helper()
	for _, c := range s.srv.Calls() {
		got := map[string]string{"key": c.Key, "marker": c.Form.Get("metadata[operation_id]"), "charge": c.Form.Get("charge")}
		if d := cmp.Diff(map[string]string{"key": op.Key, "marker": string(op.ID), "charge": "ch_1"}, got); d != "" {
			s.t.Errorf("request (-want +got):\n%s", d)
		}
	}
}

// once prepares a tool a single time, with a bound, and remembers a failure.
func once(prepare func(ctx context.Context) ([]string, error)) tool {
	do := sync.OnceValues(func() ([]string, error) {
		// Not the context of the test that comes first: it is prepared for all of them.
		ctx, cancel := context.WithTimeout(context.Background(), setupLimit)
		defer cancel()
		return prepare(ctx)
	})
	return func(t *testing.T) []string {
		t.Helper()
		command, err := do()
		if err != nil {
			t.Fatal(err)
		}
		return command
	}
}

// work is a folder that is kept between runs for what takes long to install. It is held
// until unlock, so that test processes at the same time do not write into each other's.
func work(name, version string) (dir string, unlock func(), err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir = filepath.Join(base, "reconciler-examples", fmt.Sprintf("%s-%x", name, sha256.Sum256([]byte(version)))[:len(name)+17])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return dir, func() { _ = lock.Close() }, nil // closing it unlocks
}

func do(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

var goTool = once(func(ctx context.Context) ([]string, error) {
	dir, unlock, err := work("go", "1")
	if err != nil {
		return nil, err
	}
	defer unlock()
	program := filepath.Join(dir, "refund")
	return []string{program}, do(ctx, ".", "go", "build", "-o", program, "./refund")
})

// pythonTool is Debian's Python, for which Debian has the driver; elsewhere the first
// python3 that has it.
var pythonTool = once(func(ctx context.Context) ([]string, error) {
	candidates := []string{"/usr/bin/python3", "python3"}
	find := func() []string {
		for _, python := range candidates {
			if do(ctx, ".", python, "-c", "import psycopg") == nil {
				return []string{python, "refund.py"}
			}
		}
		return nil
	}
	const install = "apt-get install -y --no-install-recommends python3-psycopg"
	if command := find(); command != nil {
		return command, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return nil, fmt.Errorf("no python3 with psycopg 3 was found: as root, %s", install)
	}
	if err := do(ctx, ".", "sh", "-c", "apt-get update && "+install); err != nil {
		return nil, err
	}
	if command := find(); command != nil {
		return command, nil
	}
	return nil, fmt.Errorf("python3 does not find psycopg after: %s", install)
})

var typeScriptTool = once(func(ctx context.Context) ([]string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s was not found: install Node.js 18 or later (Debian: apt-get install nodejs npm)", program)
		}
	}
	manifest, err := os.ReadFile("package.json")
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile("refund.ts")
	if err != nil {
		return nil, err
	}
	dir, unlock, err := work("typescript", string(manifest))
	if err != nil {
		return nil, err
	}
	defer unlock()
	for name, text := range map[string][]byte{"package.json": manifest, "refund.ts": source} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	installed := filepath.Join(dir, "installed")
	if _, err := os.Stat(installed); err != nil {
		if err := do(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
			return nil, err
		}
		if err := os.WriteFile(installed, nil, 0o644); err != nil {
			return nil, err
		}
	}
	return []string{"node", filepath.Join(dir, "build", "refund.js")}, do(ctx, dir, "npm", "run", "--silent", "build")
})
