package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"reconciler": main})
}

// scriptNow is the time of the simulated worlds of the scripts.
var scriptNow = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// Every verb has a script in testdata/script, its errors included. The commands below
// give a script what it cannot make itself: a database, a Stripe, an exit code.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("RECONCILER_CONFIG", "")
			e.Setenv("STRIPE_API_KEY", "sk_live_"+"TESTONLY")
			e.Setenv("STRIPE_READ_KEY", "rk_live_"+"TESTONLY")
			e.Values[stripeKey{}] = new(*stripetest.Server)
			e.Values[slackKey{}] = new(*slacktest.Server)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"database":  func(ts *testscript.TestScript, neg bool, args []string) { database(t, ts, args) },
			"stripe":    stripe,
			"slack":     slackWorkspace,
			"channel":   channel,
			"refund":    refund,
			"exits":     exits,
			"sql":       func(ts *testscript.TestScript, _ bool, args []string) { sql(t.Context(), ts, args) },
			"known":     func(ts *testscript.TestScript, _ bool, args []string) { known(t.Context(), ts, args) },
			"login":     func(ts *testscript.TestScript, _ bool, args []string) { login(t.Context(), ts, args) },
			"effectid":  effectid,
			"freeport":  freeport,
			"get":       get,
			"secrets":   secrets,
			"trialdir":  trialdir,
			"terminate": terminate,
			"hangup":    hangup,
		},
	})
}

// database [empty|simulated|latin1] names a fresh database in RECONCILER_DATABASE_URL: with
// the newest schema and a real clock, without a schema, or with a clock that stands.
func database(t *testing.T, ts *testscript.TestScript, args []string) {
	var url string
	switch strings.Join(args, " ") {
	case "":
		url = pgtest.URL(t)
	case "empty":
		url = pgtest.EmptyURL(t)
	case "simulated":
		url = pgtest.URL(t, pgtest.SimulatedTime(scriptNow))
	case "latin1":
		url = pgtest.EncodedURL(t, "LATIN1")
	default:
		ts.Fatalf("database [empty|simulated|latin1]")
	}
	ts.Setenv("RECONCILER_DATABASE_URL", url)
}

type stripeKey struct{}

// stripe [down|up|writes N] starts a fake Stripe whose clock stands at the scripts'
// time and names it in STRIPE_URL; then takes it down or up, or counts its writes.
func stripe(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		s, err := stripetest.Start(stripetest.Options{
			Now: func() time.Time { return scriptNow }, Seed: 1,
			Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_" + "TESTONLY", ReadKey: "rk_live_" + "TESTONLY"}},
		})
		ts.Check(err)
		ts.Defer(s.Close)
		ts.Setenv("STRIPE_URL", s.URL())
		*ts.Value(stripeKey{}).(**stripetest.Server) = s
		return
	}
	s := *ts.Value(stripeKey{}).(**stripetest.Server)
	switch {
	case args[0] == "down":
		s.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	case args[0] == "up":
		s.ClearFaults()
	case args[0] == "writes" && len(args) == 2:
		if got := strconv.Itoa(s.Writes()); got != args[1] {
			ts.Fatalf("%s writes at the provider, want %s", got, args[1])
		}
	default:
		ts.Fatalf("stripe [down|up|writes N]")
	}
}

// slack SCOPES starts a Slack workspace in which the token xoxb-TESTONLY has the scopes, and
// names it in SLACK_URL.
func slackWorkspace(ts *testscript.TestScript, _ bool, args []string) {
	s, err := slacktest.Start(slacktest.Options{Token: "xoxb-" + "TESTONLY", Scopes: strings.Join(args, ",")})
	ts.Check(err)
	ts.Defer(s.Close)
	ts.Setenv("SLACK_URL", s.URL())
	*ts.Value(slackKey{}).(**slacktest.Server) = s
}

type slackKey struct{}

// channel archive NAME archives a channel of the Slack workspace.
func channel(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 || args[0] != "archive" {
		ts.Fatalf("channel archive NAME")
	}
	s := *ts.Value(slackKey{}).(**slacktest.Server)
	s.Archive(args[1], true)
}

// refund OPERATION CHARGE AMOUNT [KEY] makes a refund in EUR at the fake Stripe, ten minutes ago.
func refund(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("refund OPERATION CHARGE AMOUNT [KEY]")
	}
	amount, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	r := stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: args[1], Amount: amount, Currency: "eur",
		Created: scriptNow.Add(-10 * time.Minute), Metadata: map[string]string{"op_id": args[0]},
	}
	if len(args) > 3 {
		r.Key = args[3]
	}
	s := *ts.Value(stripeKey{}).(**stripetest.Server)
	_, err = s.AddRefund(r)
	ts.Check(err)
}

// exits CODE PROGRAM… demands an exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("exits CODE PROGRAM...")
	}
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// sql STATEMENT runs a statement on the script's database.
func sql(ctx context.Context, ts *testscript.TestScript, args []string) {
	conn, err := pgx.Connect(ctx, ts.Getenv("RECONCILER_DATABASE_URL"))
	ts.Check(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, strings.Join(args, " "))
	ts.Check(err)
}

// freeport NAME puts a free port of 127.0.0.1 into a variable.
func freeport(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Check(l.Close())
}

// get URL STATUS [REGEXP] asks until the status comes and the body holds a match, for
// 30 seconds.
func get(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("get URL STATUS [REGEXP]")
	}
	want := regexp.MustCompile("(?m)" + strings.Join(args[2:], " "))
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		r, err := http.Get(args[0])
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(r.Body)
		ts.Check(err)
		ts.Check(r.Body.Close())
		last = fmt.Sprintf("%d\n%s", r.StatusCode, body)
		if strconv.Itoa(r.StatusCode) == args[1] && want.Match(body) {
			return
		}
	}
	ts.Fatalf("%s did not answer %s with %s; its last answer was:\n%s", args[0], args[1], want, last)
}

// secrets FILE… demands that no secret of the scripts stands in the files.
func secrets(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := ts.ReadFile(name)
		if strings.Contains(text, "TESTONLY") {
			ts.Fatalf("%s shows a secret:\n%s", name, text)
		}
	}
}

// trialdir NAME puts a folder into a variable that the user who runs PostgreSQL can
// enter; the script's own is closed to everybody else.
func trialdir(ts *testscript.TestScript, _ bool, args []string) {
	dir, err := os.MkdirTemp(localpg.ReachableTemp(), "trial")
	ts.Check(err)
	ts.Check(os.Chmod(dir, 0o755))
	ts.Defer(func() { ts.Check(os.RemoveAll(dir)) })
	ts.Setenv(args[0], dir)
}

// terminate sends SIGTERM to the script's background commands.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// hangup asks all programs in the background to read their configuration again.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	}
}
