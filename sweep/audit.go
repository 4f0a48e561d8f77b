package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Accounts is what an audit reads of the ledger besides what a sweep does.
// [ledger.Ledger] is one.
type Accounts interface {
	Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error)
	Named(ctx context.Context, effects []recon.Effect) ([]recon.OperationID, error)
	Known(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]recon.Effect, error)
	ListStates(ctx context.Context, source recon.SourceName) ([]ledger.ListState, error)
	Coverage(ctx context.Context, s ledger.AuditScope) ([]recon.Coverage, error)
	FirstOperation(ctx context.Context, source recon.SourceName) (time.Time, error)
	FindingsBy(ctx context.Context, fingerprints []string) (map[string]ledger.StoredFinding, error)
	AuditOperations(ctx context.Context, s ledger.AuditScope, after recon.OperationID, limit int) (ledger.AuditChunk, error)
	AuditOwned(ctx context.Context, s ledger.AuditScope) (int, error)
	AuditAny(ctx context.Context, s ledger.AuditScope) (operations, effects bool, err error)
	AuditShelf(ctx context.Context, s ledger.AuditScope, after ledger.AuditPlace, limit int) ([]recon.Effect, error)
	AuditOutside(ctx context.Context, s ledger.AuditScope, after ledger.AuditPlace, limit int) (ledger.AuditPiece, error)
	AuditTwins(ctx context.Context, s ledger.AuditScope, within time.Duration, each func([]recon.OperationID) error) error
	Reopened(ctx context.Context, ids []recon.OperationID) (map[recon.OperationID]bool, error)
	AuditFailed(ctx context.Context, s ledger.AuditScope, each func([]ledger.FailedEffect) error) error
	Children(ctx context.Context, parents []string) ([]recon.Effect, error)
	AuditTotals(ctx context.Context, s ledger.AuditScope, each func(parents []string) error) error
	AuditToldParents(ctx context.Context, source recon.SourceName) ([]string, error)
	AuditOver(ctx context.Context, source recon.SourceName, holding []string) ([]string, error)
}

var _ Accounts = (*ledger.Ledger)(nil)

// Audit accounts for everything at one source, both ways: every operation and every
// effect of a window is put into one class, by the same rules as in a sweep, and what is
// wrong is told. Its fields are set once; it may then run again and again, one run at a
// time.
type Audit struct {
	*Sweep
	Accounts Accounts
	// Policies are those of the source's actions: the kinds to list, and how long an
	// effect may wait for its operation.
	Policies []recon.Policy
	Zone     *time.Location // nil: UTC; windows are told in it
	// Recover reads the provider's feed of changes into the inbox and takes in what it
	// brought. Nil: the source has none.
	Recover func(ctx context.Context, now func() time.Time) (Recovered, error)
	// Pause is waited for before a page that could not be read is asked for again; four times
	// as long before the third and last try. 0: 250 ms.
	Pause time.Duration

	// all has every operation judged: for dry runs, in which the ledger does not know what
	// was seen, and for tests of the short cut.
	all bool
}

// AuditOptions are those of one audit.
type AuditOptions struct {
	// Now gives the time that decisions, ages and windows are judged by.
	Now func() time.Time
	// Tick makes the run the only one of its time; empty: a manual run.
	Tick string
	// Window is what is counted; a side that is zero is chosen: from the last complete
	// point less the overlap, to what the provider is sure to show by now.
	Window recon.Window
}

// Run makes one audit. Each step ends in a ledger in which the next run goes on; stopping
// between any two of them and running again ends in the same ledger. An error that comes
// with a result says how far the run got. *ledger.RunningError and *ledger.HeldError say
// that another run holds the place, *WindowError that the window cannot be audited.
func (a *Audit) Run(ctx context.Context, o AuditOptions) (AuditResult, error) {
	u, err := a.open(ctx, o)
	if err != nil {
		return AuditResult{}, err
	}
	return u.close(ctx, u.account(u.alive))
}

// account is the whole control flow of an audit.
func (u *audit) account(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"choose", u.choose},         // the window, by how far the lists were read
		{"expire leases", u.expire},  // what nobody is sending any more is in doubt
		{"list", u.list},             // everything there, page by page, paired as it is saved
		{"recover", u.recover},       // what the provider tells of changes
		{"give back", u.giveBack},    // from here on nobody is asked
		{"pair", u.pairShelf},        // what other ways brought and nobody paired
		{"operations", u.operations}, // each into its class
		{"effects", u.effects},       // those that are not of these operations
		{"across", u.across},         // what no single operation shows
		{"over", u.over},             // findings that no longer hold
		{"complete", u.complete},     // how far a source is accounted for that cannot be listed
		{"tell", u.tell},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("audit of %s: %w", u.out.Source, err)
		}
		if err := u.step(step.name); err != nil {
			return err
		}
	}
	return nil
}

// audit is one run while it goes on.
type audit struct {
	*pass
	of        *Audit
	span      span
	at        time.Time                              // when everything was read: it is judged by this
	seen      []recon.Look                           // complete lists of this run, which answer for operations
	standing  []recon.Coverage                       // and what was seen completely before
	empty     bool                                   // the source has operations, and no effect at all
	explained map[recon.EffectIdentity]bool          // effects that gave back what was done once too often
	counted   map[recon.EffectIdentity]bool          // effects that got their operation in this run
	hints     map[recon.EffectIdentity][]recon.Match // what effects without owner could be
	holding   []string                               // fingerprints of what keeps failing and of parents' totals, as they are
	result    AuditResult
	since     time.Time // the source is held without a break
	opened    int       // findings that belong to no decision
	owned     int       // effects of the window that belong to its operations
}

// open takes the run's place. The source is taken when it is asked.
func (a *Audit) open(ctx context.Context, o AuditOptions) (*audit, error) {
	if o.Window.To.After(o.Now()) {
		_, err := spanOf(o.Window, horizon{now: o.Now()})
		return nil, err
	}
	p, err := a.place(ctx, Options{Now: o.Now, Tick: o.Tick}, "audit", ledger.OpenOperations)
	if err != nil {
		return nil, err
	}
	p.beats.Go(p.beat)
	zone := a.Zone
	if zone == nil {
		zone = time.UTC
	}
	return &audit{
		pass: p, of: a, span: span{counted: o.Window},
		counted: map[recon.EffectIdentity]bool{}, explained: map[recon.EffectIdentity]bool{}, hints: map[recon.EffectIdentity][]recon.Match{}, result: newAuditResult(p.out.Source, zone),
	}, nil
}

// close ends the run; its row keeps the whole result.
func (u *audit) close(ctx context.Context, failure error) (AuditResult, error) {
	u.result.DurationMS = time.Since(u.started).Milliseconds()
	u.result.Runs = []AuditRun{{
		RunID: u.run.ID, Source: u.out.Source, Window: u.result.Window, Operations: u.result.Operations, Effects: u.result.Effects,
		ProviderCalls: u.out.ProviderCalls, DurationMS: u.result.DurationMS,
	}}
	u.whole = u.result
	_, err := u.end(ctx, failure)
	return u.result, err
}

// choose gives the run its window.
func (u *audit) choose(ctx context.Context) error {
	states, err := u.states(ctx)
	if err != nil {
		return err
	}
	last := lastComplete(u.toList(), states)
	if last.IsZero() {
		last, err = u.of.Accounts.FirstOperation(ctx, u.out.Source)
		if err != nil {
			return err
		}
	}
	now := u.options.Now()
	if last.IsZero() || last.After(now) {
		last = now.Add(-firstWindow)
	}
	if !u.lists() {
		last = later(last, now.Add(-unlistedWindow))
	}
	u.span, err = spanOf(u.span.counted, horizon{last: last, now: now, lag: u.lag(), reach: u.grace()})
	u.result.window(u.span.counted)
	return err
}

// lag is after how long the provider is sure to show by a list what exists.
func (u *audit) lag() time.Duration {
	ability, _ := u.Source.Sheet().Ability(recon.ByList)
	return ability.Lag.Std()
}

// grace is the longest time for which an effect may wait for its operation.
func (u *audit) grace() time.Duration {
	var longest time.Duration
	for _, p := range u.of.Policies {
		longest = max(longest, p.Grace.Std())
	}
	return longest
}

func (u *audit) scope() ledger.AuditScope {
	return ledger.AuditScope{Source: u.out.Source, Window: u.span.counted, All: u.of.all}
}

// lists reports whether the source can be listed.
func (u *audit) lists() bool {
	_, can := u.Source.(sources.Lister)
	return can
}

// toList are the lists that show all effects of the source's actions; for a source that
// cannot list, one that stands for the audit itself.
func (u *audit) toList() []sources.List {
	lister, can := u.Source.(sources.Lister)
	if !can {
		return []sources.List{{}}
	}
	return lister.Lists(u.kinds())
}

// kinds are the kinds of effects that the source's actions make.
func (u *audit) kinds() []string {
	seen := map[string]bool{}
	var kinds []string
	for _, p := range u.of.Policies {
		if !seen[p.Effect] {
			seen[p.Effect] = true
			kinds = append(kinds, p.Effect)
		}
	}
	return kinds
}

// graceOf is how long an effect of a kind may wait for its operation.
func (u *audit) graceOf(kind string) time.Duration {
	grace, found := time.Duration(0), false
	for _, p := range u.of.Policies {
		if p.Effect == kind || p.Effect == "" {
			grace, found = max(grace, p.Grace.Std()), true
		}
	}
	if !found {
		return recon.DefaultPolicy().Grace.Std()
	}
	return grace
}

// ownership says whether an effect without operation is one of ours to explain. Known are
// the effects that it may follow from.
func (u *audit) ownership(e *recon.Effect, known map[recon.EffectIdentity]recon.Effect) rules.Ownership {
	if u.explained[e.Identity()] {
		return rules.Explained
	}
	for _, id := range origins(*e) {
		of, there := known[id]
		if there && (id.ID == e.CausedBy || of.Owner != "" && rules.Releases(*e, of)) {
			return rules.Explained
		}
	}
	if !u.mayBeOurs(*e) {
		return rules.NotOurs
	}
	return rules.Ours
}

// mayBeOurs reports whether an effect is of our accounts and of a kind that an action of
// the source makes. Events tell of all objects of an account, and what customers pay there
// needs no operation.
func (u *audit) mayBeOurs(e recon.Effect) bool {
	makes := func(p recon.Policy) bool { return p.Effect == e.Kind || p.Effect == "" }
	return u.Source.Sheet().Has(e.Account, e.Mode) && (len(u.of.Policies) == 0 || slices.ContainsFunc(u.of.Policies, makes)) && rules.Owns(e, u.of.Policies)
}

// origins are the effects that one may follow from: its cause and what it hangs under.
func origins(e recon.Effect) []recon.EffectIdentity {
	var ids []recon.EffectIdentity
	for _, name := range append([]string{e.CausedBy, e.Parent}, e.OtherParents...) {
		if name != "" {
			id := e.Identity()
			id.ID = name
			ids = append(ids, id)
		}
	}
	return ids
}
