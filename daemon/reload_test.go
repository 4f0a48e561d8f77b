package daemon

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// reloading is a daemon whose file a test writes.
type reloading struct {
	*running
	signal chan os.Signal
	file   chan string
}

func startReloading(t *testing.T, environ map[string]string, url, text string) *reloading {
	t.Helper()
	r := &reloading{signal: make(chan os.Signal, 1), file: make(chan string, 1)}
	r.running = start(t, parse(t, text, environ), url, func(o *Options) {
		o.Reload = r.signal
		o.Load = func() (*config.Config, error) {
			return config.Parse("test.yaml", []byte(<-r.file), func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
		}
	})
	r.await("/readyz", 200, "ready")
	return r
}

// reload writes the file, asks for it, and waits for a word in the log.
func (r *reloading) reload(text, want string) {
	r.Helper()
	before := strings.Count(r.log.String(), want)
	r.file <- text
	r.signal <- syscall.SIGHUP
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if strings.Count(r.log.String(), want) > before {
			return
		}
	}
	r.Fatalf("the log does not say %q:\n%s", want, r.log)
}

func TestANewConfigurationTakesOverWithoutARestart(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY"}
	url := pgtest.URL(t)
	asleep := oneSource + "schedule: {sweep: off, audit: off, reverify: off}\n"
	r := startReloading(t, environ, url, asleep)
	record(t, r.config(asleep, environ).Policies, url)
	_, err = stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 1000, Currency: "eur",
		Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": "op_right"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, page := r.get("/metrics"); strings.Contains(page, `run="sweep/stripe-main"`) {
		t.Error("a run that is switched off has a series")
	}

	// What is wrong changes nothing, and each fault is said.
	r.reload(strings.Replace(asleep, "class: irreversible", "class: irreversable, repeat: sometimes", 1), "the running one stays")
	for _, want := range []string{`"key":"actions.refund.create.class"`, `"key":"actions.refund.create.repeat"`} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log does not name %s:\n%s", want, r.log)
		}
	}
	// So is what a running process cannot change.
	r.reload(strings.Replace(asleep, "marker: op_id", "marker: other", 1), "cannot change without a restart: sources.stripe-main")
	r.reload("tenant: other\n"+asleep, "cannot change without a restart: tenant")
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Unknown})

	awake := oneSource + `
schedule: {audit: off, reverify: off}
escalation:
  destinations: [{name: new-place, kind: slack, settings: {channel: "#c", token: "${TOKEN}", api_url: "http://127.0.0.1:1"}}]
`
	awake = strings.Replace(awake, "class: irreversible", "class: irreversible, check_after: 45s", 1)
	r.reload(awake, "the new configuration holds")
	r.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} [1-9]`)
	r.await("/metrics", 200, `^reconciler_notices_total\{destination="new-place"`)
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Succeeded})
	wantActive(t, url, "refund.create", 2)
	if strings.Contains(r.log.String(), "TESTONLY") {
		t.Error("the log shows a secret")
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// A right file that comes while the database is away is not taken, is not taken later by
// itself, and the log says so.
func TestAConfigurationThatComesWhileTheDatabaseIsAwayIsToBeSentAgain(t *testing.T) {
	t.Parallel()
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": "http://127.0.0.1:1"}
	url := pgtest.URL(t)
	gate, gated := newGate(t, url)
	gate.open()
	r := startReloading(t, environ, gated, oneSource)
	next := strings.Replace(oneSource, "class: irreversible", "class: irreversible, one_open: true", 1)
	if next == oneSource {
		t.Fatal("nothing is changed")
	}
	gate.close()
	r.reload(next, "the file is right: send SIGHUP again once that is mended")
	gate.open()
	r.await("/readyz", 200, "ready")
	wantActive(t, url, "refund.create", 1)
	r.reload(next, "the new configuration holds")
	wantActive(t, url, "refund.create", 2)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

func (r *reloading) config(text string, environ map[string]string) *config.Config {
	return parse(r.T, text, environ)
}

func wantActive(t *testing.T, url, action string, version int) {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all, err := l.Policies(t.Context())
	if err != nil || len(all) != 1 || all[0].Action != action || all[0].Version != version {
		t.Errorf("policies %+v, %v, want version %d", all, err, version)
	}
}

// Ten seconds after the signal an orchestrator kills.
func TestItStopsInTimeWhileTheProviderHangs(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold); stripe.Close() })
	stripe.Script(stripetest.Fault{Kind: stripetest.Slow, Hold: hold, Times: stripetest.Always})
	c := parse(t, oneSource+"schedule: {audit: off, reverify: off}\n", map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL()})
	url := pgtest.URL(t)
	record(t, c.Policies, url)
	r := start(t, c, url)
	r.await("/metrics", 200, `^reconciler_ledger_snapshot_timestamp_seconds [1-9]`)
	for deadline := time.Now().Add(20 * time.Second); len(stripe.Calls()) == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
	if strings.Contains(r.log.String(), "did not stop well") {
		t.Errorf("a part did not end:\n%s", r.log)
	}
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The place, the source and the tick are given back: whoever comes next goes on at once.
	h, err := l.HoldSource(t.Context(), "stripe-main", "next", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.ReleaseSource(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	runs, err := l.LastRuns(t.Context(), "sweep/stripe-main", 5)
	if err != nil || len(runs) == 0 || runs[0].Outcome != ledger.RunAbandoned || !strings.Contains(runs[0].Tick, " abandoned ") {
		t.Errorf("runs %+v, %v", runs, err)
	}
}
