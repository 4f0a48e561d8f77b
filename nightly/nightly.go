// Package nightly makes the document of a report: it reads what the ledger holds of a range
// of time, chooses the audits that account for it, and says what nobody looked into.
// Package reports renders the document.
package nightly

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// maxPages bounds for how many operations a report has a page of its own.
const maxPages = 200

// Report reads what a report tells.
type Report struct {
	Ledger *ledger.Ledger
	Zone   *time.Location
	Holder string
	// Unkept is called when the report could not be kept: the role may only read.
	Unkept func(error)
}

// Make makes the report of a window with its name for people. A range that was over and
// audited is kept in the ledger the first time, and is the same report from then on, until
// another audit has looked into it.
func (r Report) Make(ctx context.Context, w recon.Window, name string) (*reports.Nightly, error) {
	m := making{Report: r, ids: map[string]bool{}}
	period, err := r.Ledger.Period(ctx, w, m.readAudits(w))
	if err != nil {
		return nil, err
	}
	m.Period = period
	place := m.place()
	if place != "" {
		kept, err := r.Ledger.KeptReport(ctx, place)
		if err != nil || kept != nil {
			return read(kept, err)
		}
	}
	n, err := m.nightly(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := n.Check(); err != nil {
		return nil, err
	}
	return m.keep(ctx, place, n)
}

func read(kept json.RawMessage, err error) (*reports.Nightly, error) {
	if err != nil {
		return nil, err
	}
	return reports.ReadNightly(kept)
}

// making is one report while it is made.
type making struct {
	Report
	ledger.Period
	audits []oneAudit // that account for the range, by source and time
	failed []ledger.Run
	ids    map[string]bool // of the findings that they told
}

type oneAudit struct {
	ledger.Run
	source recon.SourceName
	result
}

// result is what a report needs of the document that an audit left.
type result struct {
	Window     struct{ From, To time.Time }
	Operations int
	Effects    int
	Classes    reports.NightlyClasses
	Findings   []struct{ ID string }
	Unseen     []struct {
		Source   recon.SourceName
		From, To time.Time
		Why      string
	}
}

// readAudits gives what chooses, of the runs of audits, those that account for the range:
// for each source the newest ones that add something, so that one which saw all of it
// stands alone.
func (m *making) readAudits(w recon.Window) func([]ledger.Run) ([]string, error) {
	return func(runs []ledger.Run) ([]string, error) {
		left := map[recon.SourceName][]recon.Window{}
		for _, run := range runs {
			source := recon.SourceName(strings.TrimPrefix(run.Name, "audit/"))
			if _, begun := left[source]; !begun {
				left[source] = []recon.Window{w}
			}
			if run.Outcome != ledger.RunDone {
				if len(left[source]) == 1 && left[source][0] == w {
					m.failed = append(m.failed, run)
				}
				continue
			}
			a := oneAudit{Run: run, source: source}
			if err := json.Unmarshal(run.Counts, &a.result); err != nil {
				return nil, fmt.Errorf("the result of the audit of %s that began %s cannot be read: %w", source, recon.TimeText(run.StartedAt, m.Zone), err)
			}
			rest := without(left[source], recon.Window{From: a.Window.From, To: a.Window.To})
			if slices.Equal(rest, left[source]) {
				continue
			}
			left[source] = rest
			m.audits = append(m.audits, a)
			for _, f := range a.Findings {
				m.ids[f.ID] = true
			}
		}
		slices.SortStableFunc(m.audits, func(a, b oneAudit) int {
			return cmp.Or(cmp.Compare(a.source, b.source), a.Window.From.Compare(b.Window.From))
		})
		ids := make([]string, 0, len(m.ids))
		for id := range m.ids {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids, nil
	}
}

// without takes a window out of others.
func without(list []recon.Window, w recon.Window) []recon.Window {
	var rest []recon.Window
	for _, l := range list {
		if !w.From.Before(l.To) || !w.To.After(l.From) {
			rest = append(rest, l)
			continue
		}
		if l.From.Before(w.From) {
			rest = append(rest, recon.Window{From: l.From, To: w.From.UTC()})
		}
		if w.To.Before(l.To) {
			rest = append(rest, recon.Window{From: w.To.UTC(), To: l.To})
		}
	}
	return rest
}

// place names the report in the ledger by what it rests on; empty: it is not kept.
func (m *making) place() string {
	if len(m.audits) == 0 || m.At.Before(m.Window.To) {
		return ""
	}
	basis := sha256.New()
	fmt.Fprintf(basis, "%d\n", reports.NightlyFormat)
	for _, a := range m.audits {
		fmt.Fprintf(basis, "%s\n", a.ID)
	}
	return fmt.Sprintf("%s/%s/%s/%x", m.Window.From.UTC().Format(time.RFC3339Nano), m.Window.To.UTC().Format(time.RFC3339Nano), m.Zone, basis.Sum(nil)[:8])
}

// keep keeps the report, and gives what is kept: numbers and texts as they come back from
// the ledger are those of every later time.
func (m *making) keep(ctx context.Context, place string, n *reports.Nightly) (*reports.Nightly, error) {
	var b bytes.Buffer
	if err := reports.NightlyJSON(&b, n); err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	if place == "" {
		return reports.ReadNightly(b.Bytes())
	}
	kept, err := m.Ledger.KeepReport(ctx, place, m.Holder, b.Bytes())
	var fault *ledger.Fault
	if errors.As(err, &fault) && fault.Kind == ledger.FaultPrivilege && m.Unkept != nil {
		m.Unkept(err)
		return reports.ReadNightly(b.Bytes())
	}
	return read(kept, err)
}

func (m *making) nightly(ctx context.Context, name string) (*reports.Nightly, error) {
	w := m.Window
	n := &reports.Nightly{
		Format: reports.NightlyFormat, AsOf: m.At, Ended: !m.At.Before(w.To), Exponents: m.Exponents,
		Window: reports.NightlyWindow{From: w.From.In(m.Zone), To: w.To.In(m.Zone), Zone: m.Zone.String(), Name: name, Hours: w.To.Sub(w.From).Hours()},
		Totals: reports.NightlyTotals(m.Counted),
		Chains: reports.NightlyChains(m.Changed),
	}
	m.accounts(n)
	n.Operations, n.Effects, n.Fees = m.operations(), m.effects(), m.fees()
	n.Open, n.Truth, n.Policies = m.open(), m.truth(), m.policies()
	if err := m.findings(ctx, n); err != nil {
		return nil, err
	}
	return n, m.stories(ctx, n)
}

// accounts tells which audits looked into the range, and what nobody looked into.
func (m *making) accounts(n *reports.Nightly) {
	n.Audits, n.NotAudited, n.Unseen, n.Failed, n.Down = []reports.NightlyAudit{}, []reports.NightlyGap{}, []reports.NightlyGap{}, []reports.NightlyGap{}, []reports.NightlyGap{}
	left := map[recon.SourceName][]recon.Window{}
	until := m.Window.To
	if m.At.Before(until) {
		until = m.At
	}
	for _, s := range m.Sources {
		left[s] = []recon.Window{{From: m.Window.From, To: until}}
	}
	for _, a := range m.audits {
		left[a.source] = without(left[a.source], recon.Window{From: a.Window.From, To: a.Window.To})
		n.Audits = append(n.Audits, reports.NightlyAudit{
			RunID: a.ID, Source: a.source, From: a.Window.From.In(m.Zone), To: a.Window.To.In(m.Zone), FinishedAt: a.FinishedAt,
			Operations: a.Operations, Effects: a.Effects, Classes: a.Classes,
		})
		for _, u := range a.Unseen {
			if u.From.Before(m.Window.To) && u.To.After(m.Window.From) {
				n.Unseen = append(n.Unseen, m.gap(u.Source, u.From, u.To, u.Why))
			}
		}
	}
	n.Classes = reports.SumClasses(n.Audits)
	for _, s := range m.Sources {
		for _, w := range left[s] {
			n.NotAudited = append(n.NotAudited, m.gap(s, w.From, w.To, "no finished audit covers it"))
		}
		if since, down := m.Down[s]; down {
			n.Down = append(n.Down, m.gap(s, since, time.Time{}, "the provider could not be asked"))
		}
	}
	for _, run := range m.failed {
		n.Failed = append(n.Failed, m.gap(recon.SourceName(strings.TrimPrefix(run.Name, "audit/")), run.StartedAt, run.FinishedAt, run.Outcome+": "+run.Error))
	}
}

func (m *making) gap(s recon.SourceName, from, to time.Time, why string) reports.NightlyGap {
	g := reports.NightlyGap{Source: s, From: from.In(m.Zone), Why: why}
	if !to.IsZero() {
		to = to.In(m.Zone)
		g.To = &to
	}
	return g
}
