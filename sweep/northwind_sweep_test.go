package sweep

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A ledger that we did not write is imported and swept against a Stripe that holds its
// effects: every open operation ends as the truth says.
func TestNorthwindIsImportedAndSweptAsTheTruthSays(t *testing.T) {
	t.Parallel()
	_, answer := northwind(t)
	var window struct{ Now time.Time }
	if err := json.Unmarshal(testdata(t, "window.json"), &window); err != nil {
		t.Fatal(err)
	}
	now := window.Now
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(window.Now))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	server, source := northwindStripe(t, window.Now)
	policy := recon.DefaultPolicy()
	policy.Action, policy.Source, policy.Effect, policy.Class = "refund.create", testSource, "refund", recon.Irreversible
	sheet := source.Sheet()
	policy.System, policy.Accounts, policy.Marker, policy.KeyLifetime = sheet.System, sheet.Accounts, sheet.Marker, sheet.KeyLifetime
	if _, err := l.ApplyPolicies(t.Context(), []recon.Policy{policy}, window.Now); err != nil {
		t.Fatal(err)
	}
	ours, open := northwindStripeLines(t)
	r, err := l.Import(t.Context(), bytes.NewReader(ours), window.Now)
	if err != nil || r.Refused != 0 || r.Imported != bytes.Count(ours, []byte("\n")) {
		t.Fatalf("import: %+v, %v", r, err)
	}
	s := &Sweep{Ledger: l, Source: source, Holder: "test/1"}
	claimed, calls := 0, 0
	for range 2 { // the first one ends leases that are over; what they covered is due a little later
		out, err := s.Run(t.Context(), Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		claimed, calls = claimed+out.Claimed, calls+out.ProviderCalls
		now = now.Add(time.Minute)
		if err := l.SetSimulatedTime(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	if claimed < len(open) {
		t.Errorf("%d of %d open operations were looked at", claimed, len(open))
	}
	for _, o := range open {
		story, err := l.Story(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		checkNorthwind(t, story, answer.Operations[o.ID])
	}
	if server.Writes() != 0 {
		t.Errorf("%d writes at the provider", server.Writes())
	}
	t.Logf("%d open operations, %d provider calls, %d refunds there", len(open), calls, len(server.Refunds()))
	if pages := (len(server.Refunds()) + 99) / 100; calls > 3*pages {
		t.Errorf("%d calls where %d pages hold all refunds, and as many their events", calls, pages)
	}
}

// checkNorthwind holds an operation against the class that the truth gives it.
func checkNorthwind(t *testing.T, s recon.Story, class string) {
	t.Helper()
	type end struct {
		state   recon.State
		finding recon.FindingKind
		effect  bool // its id is stored
	}
	want, ok := map[string]end{
		"matched":   {recon.Succeeded, "", true},
		"duplicate": {recon.Succeeded, recon.FindDuplicate, true},
		"failed":    {recon.Failed, "", false},
		"in_flight": {recon.Unknown, "", true},
		"mismatch":  {recon.ManualReview, recon.FindMismatch, false},
		// Unknown for longer than the policy waits: handed to a person, and not closed.
		"unresolved": {recon.ManualReview, recon.FindUnresolved, false},
		"never_sent": {recon.Pending, recon.FindNeverSent, false},
	}[class]
	if !ok {
		t.Fatalf("%s: the truth has class %q for an open operation", s.Operation.ID, class)
	}
	got := end{state: s.Operation.State, effect: want.effect && s.Operation.EffectID != ""}
	for _, f := range s.Findings {
		if f.State == recon.FindingOpen {
			got.finding = f.Kind
		}
	}
	if got != want {
		t.Errorf("%s, %s in truth: got %+v, want %+v; findings %+v", s.Operation.ID, class, got, want, s.Findings)
	}
}

// northwindStripeLines are the operations of the one provider that can be asked, and
// those of them that are open.
func northwindStripeLines(t *testing.T) (lines []byte, open []recon.Operation) {
	t.Helper()
	for line := range bytes.Lines(testdata(t, "operations.jsonl")) {
		o, err := recon.ParseOperation(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if o.Source != testSource {
			continue
		}
		lines = append(lines, line...)
		if o.State.Open() {
			open = append(open, o)
		}
	}
	return lines, open
}

// northwindStripe is a Stripe that holds the effects of the data set, in its accounts
// and modes, and the source that asks it.
func northwindStripe(t *testing.T, now time.Time, modes ...string) (*stripetest.Server, *stripe.Source) {
	t.Helper()
	var accounts []stripetest.Account
	settings := stripe.Settings{PerSecond: 1_000_000}
	for _, a := range []recon.Account{{Account: "acct_1NWEU", Mode: "live"}, {Account: "acct_1NWEU", Mode: "test"}, {Account: "acct_1NWUS", Mode: "live"}, {Account: "acct_1NWUS", Mode: "test"}} {
		key := "sk_" + a.Mode + "_" + a.Account
		accounts = append(accounts, stripetest.Account{ID: a.Account, Mode: a.Mode, Key: key})
		one := stripe.AccountSettings{Account: a.Account, Mode: a.Mode}
		if err := one.APIKey.UnmarshalText([]byte(key)); err != nil {
			t.Fatal(err)
		}
		if len(modes) == 0 || slices.Contains(modes, a.Mode) { // the source may be set up for some of them
			settings.Accounts = append(settings.Accounts, one)
		}
	}
	server, err := stripetest.Start(stripetest.Options{Now: func() time.Time { return now }, Seed: 1, Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	var effects []recon.Effect
	seen := map[recon.EffectIdentity]bool{}
	for line := range bytes.Lines(testdata(t, "effects.jsonl")) {
		e, err := recon.ParseEffect(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if id := e.Identity(); e.Source == testSource && !seen[id] {
			seen[id] = true
			effects = append(effects, e)
		}
	}
	if n, err := server.Load(effects, "operation_id"); err != nil || n != len(effects) {
		t.Fatalf("loaded %d of %d: %v", n, len(effects), err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	settings.APIURL = server.URL()
	source, err := stripe.New(testSource, settings, stripe.Options{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return server, source
}
