package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// The month of the data set, imported into a ledger and audited at the providers that
// hold its effects, is its truth: class by class, finding by finding.
func TestNorthwindIsAuditedAsTheTruthSays(t *testing.T) {
	t.Parallel()
	_, answer := northwind(t)
	var window struct{ Now time.Time }
	if err := json.Unmarshal(testdata(t, "window.json"), &window); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(window.Now))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	zone, err := time.LoadLocation(answer.Window.Zone)
	if err != nil {
		t.Fatal(err)
	}
	var asked []sources.Source
	var policies []recon.Policy
	for _, other := range []struct {
		source       recon.SourceName
		action, kind string
	}{{testSource, "refund.create", "refund"}, {"bank-giro", "payout.send", "transfer"}, {"postmark", "email.send", "email"}, {"zendesk", "ticket.open", "ticket"}} {
		s := northwindListed(t, other.source, other.kind)
		asked = append(asked, s)
		policies = append(policies, policyFor(s, other.action, other.kind))
	}
	if _, err := l.ApplyPolicies(t.Context(), policies, window.Now); err != nil {
		t.Fatal(err)
	}
	r, err := l.Import(t.Context(), bytes.NewReader(testdata(t, "operations.jsonl")), window.Now)
	if err != nil || r.Refused != 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	var results []AuditResult
	for i, s := range asked {
		a := &Audit{Sweep: &Sweep{Ledger: l, Source: s, Holder: "test/1"}, Accounts: l, Policies: policies[i : i+1], Zone: zone}
		r, err := a.Run(t.Context(), AuditOptions{
			Now: func() time.Time { return window.Now }, Window: recon.Window{From: answer.Window.From, To: answer.Window.To},
		})
		if err != nil {
			t.Fatal(err)
		}
		checkSums(t, r)
		results = append(results, r)
	}
	got := MergeAudits(results, zone)
	if diff := cmp.Diff(answer.Classes.Operations, got.Classes.Operations); diff != "" {
		t.Errorf("classes of operations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(answer.Classes.Effects, got.Classes.Effects); diff != "" {
		t.Errorf("classes of effects (-want +got):\n%s", diff)
	}
	var want, told []string
	for _, f := range answer.Findings {
		want = append(want, line(f.Kind, f.Certainty, f.Operations, f.Effects))
	}
	for _, f := range got.Findings {
		told = append(told, line(f.Kind, f.Certainty, f.Operations, f.EffectIDs))
		if f.ID == "" {
			t.Errorf("a finding that is not stored: %+v", f)
		}
	}
	slices.Sort(want)
	slices.Sort(told)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if len(got.Unseen) != 0 {
		t.Errorf("unseen: %+v", got.Unseen)
	}
}

// The part of the month that is Stripe's, at a Stripe that shows keys in its events alone:
// lists, feed and intake together say what the truth says.
func TestNorthwindIsAuditedAtStripeAsTheTruthSays(t *testing.T) {
	t.Parallel()
	_, answer := northwind(t)
	var window struct{ Now time.Time }
	if err := json.Unmarshal(testdata(t, "window.json"), &window); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return window.Now }
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(window.Now))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	server, source := northwindStripe(t, window.Now, "live")
	policy := policyFor(source, "refund.create", "refund")
	if _, err := l.ApplyPolicies(t.Context(), []recon.Policy{policy}, window.Now); err != nil {
		t.Fatal(err)
	}
	ours, _ := northwindStripeLines(t)
	if r, err := l.Import(t.Context(), bytes.NewReader(ours), window.Now); err != nil || r.Refused != 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	box := inbox.Open(l)
	for _, a := range source.Feeds() { // the ledger has followed the events of the month
		if err := box.SaveFeed(t.Context(), inbox.Feed{Source: testSource, Account: a, ReadTo: answer.Window.From}); err != nil {
			t.Fatal(err)
		}
	}
	a := &Audit{Sweep: &Sweep{Ledger: l, Source: source, Holder: "test/1"}, Accounts: l, Policies: []recon.Policy{policy}}
	a.Recover = func(ctx context.Context, now func() time.Time) (Recovered, error) {
		read, err := (&Recovery{Inbox: box, Source: source}).Run(ctx, now)
		if err != nil {
			return read, err
		}
		in := &Intake{Inbox: box, Ledger: l, Sources: []IntakeSource{source}, Sheets: map[recon.SourceName]recon.Sheet{testSource: source.Sheet()}}
		_, err = in.Run(ctx, now)
		return read, err
	}
	r, err := a.Run(t.Context(), AuditOptions{Now: now, Window: recon.Window{From: answer.Window.From, To: answer.Window.To}})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, r)
	operations, effects := stripesTruth(t, ours, answer)
	effects[rules.ClassNotOurs] = r.Classes.Effects[rules.ClassNotOurs] // charges, of which the events of refunds tell
	wantClasses(t, r, operations, effects)
	if server.Writes() != 0 {
		t.Errorf("%d writes at the provider", server.Writes())
	}
}

// stripesTruth counts the true classes of Stripe's part, without the test mode that the
// source is not set up for.
func stripesTruth(t *testing.T, ours []byte, answer truth) (operations, effects classes) {
	t.Helper()
	operations, effects = classes{}, classes{}
	for line := range bytes.Lines(ours) {
		op, err := recon.ParseOperation(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		operations[rules.Class(answer.Operations[op.ID])]++
	}
	for place, ids := range answer.Effects {
		if strings.HasPrefix(place, string(testSource)+"/") && strings.HasSuffix(place, "/live/refund") {
			for _, class := range ids {
				effects[rules.Class(class)]++
			}
		}
	}
	return operations, effects
}

func policyFor(s sources.Source, action, kind string) recon.Policy {
	p := recon.DefaultPolicy()
	sheet := s.Sheet()
	p.Action, p.Source, p.Effect, p.Class = action, s.Name(), kind, recon.Irreversible
	p.System, p.Accounts, p.Marker, p.KeyLifetime = sheet.System, sheet.Accounts, sheet.Marker, sheet.KeyLifetime
	return p
}

// northwindListed is a provider that holds the effects of one source of the data set.
func northwindListed(t *testing.T, name recon.SourceName, kind string) *listed {
	t.Helper()
	s := &listed{name: name, page: 50}
	s.sheet = recon.Sheet{
		System: string(name), Kinds: []string{kind}, Abilities: []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong}},
	}
	seen := map[recon.EffectIdentity]bool{}
	for line := range bytes.Lines(testdata(t, "effects.jsonl")) {
		e, err := recon.ParseEffect(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if e.Source != name || seen[e.Identity()] {
			continue
		}
		seen[e.Identity()] = true
		s.effects = append(s.effects, e)
		if a := (recon.Account{Account: e.Account, Mode: e.Mode}); !slices.Contains(s.places, a) {
			s.places = append(s.places, a)
			if a.Mode == "live" { // the operations are none of a test
				s.sheet.Accounts = append(s.sheet.Accounts, a)
			}
		}
	}
	return s
}
