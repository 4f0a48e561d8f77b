package sweep

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// AuditResult is what an audit of one source or of several says; it has the shape of a
// comparison's (contracts: JSON, audit and compare).
type AuditResult struct {
	CompareResult
	Runs   []AuditRun  `json:"runs"`  // one a source
	Feeds  []AuditFeed `json:"feeds"` // what providers told of changes
	source recon.SourceName
	zone   *time.Location
	prints map[string]bool // of the findings
}

// AuditRun is one source's part of a result.
type AuditRun struct {
	RunID         string           `json:"run_id"` // empty: a dry run
	Source        recon.SourceName `json:"source"`
	Window        CompareWindow    `json:"window"`
	Operations    int              `json:"operations"`
	Effects       int              `json:"effects"`
	ProviderCalls int              `json:"provider_calls"`
	DurationMS    int64            `json:"duration_ms"`
}

// AuditFeed is a range of a provider's feed of changes that was read.
type AuditFeed struct {
	Source  recon.SourceName `json:"source"`
	Account string           `json:"account"`
	Mode    string           `json:"mode"`
	From    time.Time        `json:"from"`
	To      time.Time        `json:"to"`
	Events  int              `json:"events"`
	New     int              `json:"new"` // of them: no delivery had brought them
}

func newAuditResult(source recon.SourceName, zone *time.Location) AuditResult {
	r := AuditResult{source: source, zone: zone, prints: map[string]bool{}}
	r.Window.Zone = zone.String()
	r.Classes = newClasses()
	r.Findings, r.Unseen, r.Runs = []CompareFinding{}, []CompareUnseen{}, []AuditRun{}
	r.Feeds, r.Happened = []AuditFeed{}, []CompareHappened{}
	return r
}

// newClasses has every class, with 0.
func newClasses() CompareClasses {
	c := CompareClasses{Operations: map[rules.Class]int{}, Effects: map[rules.Class]int{}}
	for _, k := range rules.OperationClasses {
		c.Operations[k] = 0
	}
	for _, k := range rules.EffectClasses {
		c.Effects[k] = 0
	}
	return c
}

func (r *AuditResult) window(w recon.Window) {
	r.Window.From, r.Window.To = w.From.In(r.zone), w.To.In(r.zone)
}

// plain counts operations of which no rule has anything to say.
func (r *AuditResult) plain(operations, effects int) {
	r.Operations += operations
	r.Effects += effects
	r.Classes.Operations[rules.ClassMatched] += operations
	r.Classes.Effects[rules.ClassMatched] += effects
}

func (r *AuditResult) operation(c rules.Class) {
	r.Operations++
	r.Classes.Operations[c]++
}

// happened notes an operation that was open in the record and that was done.
func (r *AuditResult) happened(op recon.Operation, j rules.Judged) {
	if op.State.Open() && j.Class == rules.ClassMatched && j.Kept.ID != "" {
		r.Happened = append(r.Happened, CompareHappened{Operation: op.ID, State: op.State, EffectID: j.Kept.ID, Money: op.Money, Target: op.Target})
	}
}

func (r *AuditResult) effect(c rules.Class) {
	r.Effects++
	r.Classes.Effects[c]++
}

// tell adds a finding, once, if anything in it counts.
func (r *AuditResult) tell(f recon.Finding, ours []recon.Operation, theirs []recon.Effect, w recon.Window) {
	print := f.Fingerprint()
	if r.prints[print] {
		return
	}
	p := parties{map[recon.OperationID]*recon.Operation{}, map[recon.EffectRef]*recon.Effect{}}
	for i := range ours {
		p.operations[ours[i].ID] = &ours[i]
	}
	for i := range theirs {
		p.effects[theirs[i].Ref()] = &theirs[i]
	}
	if told := p.tell(f); told.within(w) {
		told.ID = f.ID
		r.prints[print] = true
		r.Findings = append(r.Findings, told)
	}
}

// unseen tells that a list of the source was not seen.
func (r *AuditResult) unseen(l sources.List, w recon.Window, why string) {
	u := CompareUnseen{Source: r.source, From: w.From.In(r.zone), To: w.To.In(r.zone), Why: why}
	if l != (sources.List{}) {
		u.Why = recon.Noun(l.Kind) + " of account " + l.Account + ", mode " + l.Mode + ": " + why
	}
	if !slices.Contains(r.Unseen, u) {
		r.Unseen = append(r.Unseen, u)
	}
}

// empty tells that nothing at all was seen. An empty place and one that was not shown look
// the same.
func (r *AuditResult) empty(w recon.Window) { r.unseen(sources.List{}, w, "empty") }

// sort puts findings and windows into an order that does not depend on the walk.
func (r *AuditResult) sort() {
	slices.SortFunc(r.Findings, func(a, b CompareFinding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Operations, b.Operations), slices.Compare(a.EffectIDs, b.EffectIDs),
			slices.CompareFunc(a.Effects, b.Effects, compareRefs), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(r.Unseen, func(a, b CompareUnseen) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.From.Compare(b.From), strings.Compare(a.Why, b.Why))
	})
}

// tell finishes the result: findings bear the ids that the ledger gave them.
func (u *audit) tell(ctx context.Context) error {
	all := make([]string, 0, len(u.result.Findings))
	for i := range u.result.Findings {
		all = append(all, u.result.Findings[i].fingerprint(u.out.Source))
	}
	for from := 0; from < len(all); from += u.batchSize() {
		part := all[from:min(from+u.batchSize(), len(all))]
		stored, err := u.of.Accounts.FindingsBy(ctx, part)
		if err != nil {
			return err
		}
		for i, print := range part {
			u.result.Findings[from+i].ID = stored[print].ID
		}
	}
	u.result.sort()
	return nil
}

func (f CompareFinding) fingerprint(source recon.SourceName) string {
	return recon.Finding{Kind: f.Kind, Source: source, Operations: f.Operations, Effects: f.Effects}.Fingerprint()
}

const uncovered = "it cannot be listed, and no import says that it holds all of it (import --from --to)"

// unseenBy tells what of the window was seen neither by a list of this run nor before.
func (u *audit) unseenBy() {
	if _, can := u.Source.(sources.Lister); can {
		return // each list that broke off has told it
	}
	seen := map[recon.Account]bool{}
	for _, s := range u.standing {
		if !s.Window.From.After(u.span.counted.From) && !s.Window.To.Before(u.span.counted.To) {
			seen[recon.Account{Account: s.Account, Mode: s.Mode}] = true
		}
	}
	for _, a := range u.Source.Sheet().Accounts {
		if !seen[a] {
			u.result.unseen(sources.List{}, u.span.counted, "account "+a.Account+", mode "+a.Mode+": "+uncovered)
		}
	}
	if len(u.Source.Sheet().Accounts) == 0 && len(seen) == 0 {
		u.result.unseen(sources.List{}, u.span.counted, uncovered)
	}
}

// recover reads what the provider tells of changes, where it does.
func (u *audit) recover(ctx context.Context) error {
	if u.of.Recover == nil || down(u.pass.state) {
		return nil
	}
	read, err := u.of.Recover(ctx, u.options.Now)
	for _, m := range read.Unseen {
		m.From, m.To = m.From.In(u.result.zone), m.To.In(u.result.zone)
		u.result.Unseen = append(u.result.Unseen, m)
	}
	for _, w := range read.Windows {
		if slices.ContainsFunc(read.Unseen, func(m CompareUnseen) bool { return m.From.Equal(w.Window.From) && m.To.Equal(w.Window.To) }) {
			continue // that it could not be read is told; it is not without events
		}
		u.result.Feeds = append(u.result.Feeds, AuditFeed{
			Source: u.out.Source, Account: w.Account.Account, Mode: w.Account.Mode,
			From: w.Window.From.In(u.result.zone), To: w.Window.To.In(u.result.zone), Events: w.Events, New: w.New,
		})
	}
	return err
}

// MergeAudits makes one document of the audits of several sources.
func MergeAudits(list []AuditResult, zone *time.Location) AuditResult {
	sum := newAuditResult("", zone)
	for _, r := range list {
		if sum.Window.From.IsZero() || r.Window.From.Before(sum.Window.From) {
			sum.Window.From = r.Window.From
		}
		if r.Window.To.After(sum.Window.To) {
			sum.Window.To = r.Window.To
		}
		sum.Operations += r.Operations
		sum.Effects += r.Effects
		sum.Repeated += r.Repeated
		sum.DurationMS += r.DurationMS
		for k, n := range r.Classes.Operations {
			sum.Classes.Operations[k] += n
		}
		for k, n := range r.Classes.Effects {
			sum.Classes.Effects[k] += n
		}
		sum.Findings = append(sum.Findings, r.Findings...)
		sum.Unseen = append(sum.Unseen, r.Unseen...)
		sum.Runs = append(sum.Runs, r.Runs...)
		sum.Feeds = append(sum.Feeds, r.Feeds...)
		sum.Happened = append(sum.Happened, r.Happened...)
	}
	sum.sort()
	return sum
}
