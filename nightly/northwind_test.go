package nightly

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// Where the report of the month is left to be looked at.
var out = flag.String("out", "", "write the files of the month's report into this folder")

// shop is a provider of the data set: it holds the effects of one source and lists them.
type shop struct {
	name    recon.SourceName
	sheet   recon.Sheet
	places  []recon.Account // also those that are none of ours
	effects []recon.Effect
}

var _ sources.Lister = (*shop)(nil)

func (s *shop) Name() recon.SourceName      { return s.name }
func (s *shop) Sheet() recon.Sheet          { return s.sheet }
func (s *shop) Probe(context.Context) error { return nil }

func (s *shop) Ask(_ context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	var a sources.Answer
	for range batch {
		a.Looks = append(a.Looks, recon.Look{ID: uuid.NewString(), Source: s.name, Method: recon.ByID, Outcome: recon.Blind, Fault: string(sources.Unsupported), At: now()})
	}
	return a, nil
}

func (s *shop) Lists(kinds []string) (lists []sources.List) {
	for _, k := range kinds {
		for _, a := range s.places {
			lists = append(lists, sources.List{Kind: k, Account: a.Account, Mode: a.Mode})
		}
	}
	return lists
}

func (s *shop) Page(_ context.Context, l sources.List, w recon.Window, _ string, now func() time.Time) (sources.Page, error) {
	p := sources.Page{Look: recon.Look{
		ID: uuid.NewString(), Source: s.name, Method: recon.ByList, Outcome: recon.Absent, Complete: true, Kind: l.Kind,
		Account: l.Account, Mode: l.Mode, Window: w, At: now(), Calls: 1,
	}}
	for _, e := range slices.Backward(s.effects) { // newest first
		if e.Kind == l.Kind && e.Account == l.Account && e.Mode == l.Mode && w.Contains(e.CreatedAt) {
			p.Effects = append(p.Effects, e)
			p.Look.Found, p.Look.Outcome = append(p.Look.Found, e.Identity()), recon.Found
		}
	}
	return p, nil
}

func data(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "sweep", "testdata", "northwind", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, name recon.SourceName, kind string) *shop {
	t.Helper()
	s := &shop{name: name, sheet: recon.Sheet{System: string(name), Kinds: []string{kind}, Abilities: []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong}}}}
	seen := map[recon.EffectIdentity]bool{}
	for line := range bytes.Lines(data(t, "effects.jsonl")) {
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

type answer struct {
	Window struct {
		From, To time.Time
		Zone     string
	}
	Totals   struct{ Operations, Effects int }
	Classes  reports.NightlyClasses
	Findings []struct {
		Kind       recon.FindingKind
		Operations []string `json:"operation_ids"`
		Effects    []string `json:"effect_ids"`
	}
}

// month is the ledger of the data set after an audit of its month.
func month(t *testing.T) (*ledger.Ledger, answer, recon.Window) {
	t.Helper()
	var truth answer
	if err := json.Unmarshal(data(t, "truth.json"), &truth); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 4, 1, 0, 15, 0, 0, time.UTC)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(now))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	var policies []recon.Policy
	var shops []*shop
	for _, k := range [][3]string{{"stripe-main", "refund.create", "refund"}, {"bank-giro", "payout.send", "transfer"}, {"postmark", "email.send", "email"}, {"zendesk", "ticket.open", "ticket"}} {
		s := open(t, recon.SourceName(k[0]), k[2])
		p := recon.DefaultPolicy()
		p.Action, p.Source, p.Effect, p.Class = k[1], s.name, k[2], recon.Irreversible
		p.System, p.Accounts, p.Marker, p.KeyLifetime = s.sheet.System, s.sheet.Accounts, s.sheet.Marker, s.sheet.KeyLifetime
		policies, shops = append(policies, p), append(shops, s)
	}
	if _, err := l.ApplyPolicies(t.Context(), policies, now); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Import(t.Context(), bytes.NewReader(data(t, "operations.jsonl")), now); err != nil || r.Refused != 0 {
		t.Fatalf("import: %+v, %v", r, err)
	}
	w := recon.Window{From: truth.Window.From, To: truth.Window.To}
	for i, s := range shops {
		audit(t, l, s, policies[i], w, now)
	}
	return l, truth, w
}

func audit(t *testing.T, l *ledger.Ledger, s sources.Source, p recon.Policy, w recon.Window, now time.Time) {
	t.Helper()
	a := &sweep.Audit{Sweep: &sweep.Sweep{Ledger: l, Source: s, Holder: "test/1"}, Accounts: l, Policies: []recon.Policy{p}, Zone: zone(t, "Europe/Berlin")}
	if _, err := a.Run(t.Context(), sweep.AuditOptions{Now: func() time.Time { return now }, Window: w}); err != nil {
		t.Fatal(err)
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The report of the data set's month tells its truth: class by class, finding by finding.
func TestNorthwindIsReportedAsTheTruthSays(t *testing.T) {
	t.Parallel()
	l, truth, w := month(t)
	r := Report{Ledger: l, Zone: zone(t, truth.Window.Zone), Holder: "test/1"}
	n, err := r.Make(t.Context(), w, "2026-03-01 to 2026-03-31")
	if err != nil {
		t.Fatal(err)
	}
	if n.Totals.Operations != truth.Totals.Operations {
		t.Errorf("%d operations, the truth has %d", n.Totals.Operations, truth.Totals.Operations)
	}
	if n.Classes == nil {
		t.Fatal("the audits' classes were not added")
	}
	if diff := cmp.Diff(truth.Classes, *n.Classes); diff != "" {
		t.Errorf("classes (-truth +report):\n%s", diff)
	}
	key := func(kind recon.FindingKind, operations, effects []string) string {
		operations, effects = slices.Clone(operations), slices.Clone(effects)
		slices.Sort(operations)
		slices.Sort(effects)
		return string(kind) + " " + strings.Join(operations, ",") + " " + strings.Join(effects, ",")
	}
	var want, got []string
	for _, f := range truth.Findings {
		want = append(want, key(f.Kind, f.Operations, f.Effects))
	}
	for _, f := range n.Findings {
		var ops []string
		for _, id := range f.Operations {
			ops = append(ops, string(id))
		}
		got = append(got, key(f.Kind, ops, f.EffectIDs))
		if len(f.Ours) != len(f.Operations) || len(f.Theirs) != len(f.EffectIDs) {
			t.Errorf("%s %s does not show both sides", f.Kind, f.ID)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-truth +report):\n%s", diff)
	}
	if n.Window.Hours != 743 {
		t.Errorf("a month with a change to summer time has %g hours, want 743", n.Window.Hours)
	}
	leave(t, n)
}

func leave(t *testing.T, n *reports.Nightly) {
	t.Helper()
	if *out == "" {
		return
	}
	files, err := reports.NightlyFiles(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(*out, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
