package large

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/world"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// MaxOperations bounds a world: its judge lists them all at once.
const MaxOperations = 10_000

// World is a simulation while it runs.
type World struct {
	plan    *Plan
	clock   *world.Clock
	agenda  *world.Agenda
	book    *book
	tally   *tally
	intents map[recon.OperationID]intent
	sent    map[recon.OperationID]int // requests that agents made

	at      providers
	clients map[recon.SourceName]*stripego.Client // the agents'

	doom doom
	// patience is each source's way to its provider.
	patience map[recon.SourceName]*patience
	ledger   *ledger.Ledger
	inbox    *inbox.Store
	cards    *stripe.Source
	told     *stripe.Source
	sources  map[recon.SourceName]sources.Source
	sweeps   map[recon.SourceName]*sweep.Sweep
	audits   map[recon.SourceName]*sweep.Audit
	rules    []recon.Policy // in force
	planner  *escalation.Planner
	deliver  *escalation.Deliverer
	notices  *outbox
	sleeper  *sleeper

	knowledge
	routine
	office
	posting
	endpoint endpoint
	closing  []func()
}

// Run lives through a plan in a database that has the schema and simulated time, and
// judges what became of it. The error is one of the simulation; what the product did wrong
// is in the verdict.
func Run(ctx context.Context, p *Plan, databaseURL string) (Verdict, error) {
	w := &World{
		plan: p, clock: &world.Clock{}, agenda: &world.Agenda{}, book: newBook(), tally: newTally(),
		intents: map[recon.OperationID]intent{}, sent: map[recon.OperationID]int{}, knowledge: newKnowledge(), routine: newRoutine(), posting: newPosting(), endpoint: newEndpoint(),
	}
	for _, i := range p.intents {
		w.intents[i.id] = i
	}
	w.clock.Set(epoch)
	defer w.end()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return w.openLedger(ctx, databaseURL) }, w.build, w.populate, w.live, w.lastOrders,
	} {
		if err := step(ctx); err != nil {
			return Verdict{}, fmt.Errorf("seed %d at %s: %w", p.Seed, w.clock.Now().Format(time.RFC3339), err)
		}
	}
	return w.judge(ctx)
}

func (w *World) onEnd(f func()) { w.closing = append(w.closing, f) }

// end ends what was started, last first.
func (w *World) end() {
	for n := len(w.closing) - 1; n >= 0; n-- {
		w.closing[n]()
	}
}

func (w *World) openLedger(ctx context.Context, url string) error {
	l, err := ledger.Open(ctx, ledger.Options{URL: url + "&default_query_exec_mode=cache_statement", Tracer: &w.doom})
	if err != nil {
		return err
	}
	w.onEnd(l.Close)
	w.ledger, w.inbox = l, inbox.Open(l)
	w.sleeper = &sleeper{l, map[recon.SourceName]ledger.Batch{}}
	return l.SetSimulatedTime(ctx, epoch)
}

// build starts the providers, the workspace and the product.
func (w *World) build(ctx context.Context) error {
	if err := w.startProviders(); err != nil {
		return err
	}
	w.clients = map[recon.SourceName]*stripego.Client{
		cards: world.NewAgentClient(w.at.cards.URL(), agentKey), told: world.NewAgentClient(w.at.cards.URL(), toldAgentKey),
	}
	if err := w.openSources(); err != nil {
		return err
	}
	if err := w.applyPolicies(ctx, func(*recon.Policy) {}); err != nil {
		return err
	}
	if err := w.ledger.ApplyPeople(ctx, listed, w.clock.Now()); err != nil {
		return err
	}
	w.sweeps, w.audits = map[recon.SourceName]*sweep.Sweep{}, map[recon.SourceName]*sweep.Audit{}
	for _, name := range sourceNames {
		w.hire(name)
	}
	if err := w.remember(); err != nil {
		return err
	}
	if err := w.openEndpoint(); err != nil {
		return err
	}
	return w.openSlack()
}

var sourceNames = []recon.SourceName{cards, told, bank, letters}

// hire makes the product's process for one source: its sweeps and audits.
func (w *World) hire(name recon.SourceName) {
	s := &sweep.Sweep{
		Ledger: w.sleeper, Source: w.sources[name], Holder: "product", Log: slog.New(slog.DiscardHandler),
		Watch: sweep.Watch{Judged: w.judged, Look: w.looked(name), Probed: w.probed},
	}
	w.sweeps[name] = s
	a := &sweep.Audit{Sweep: s, Accounts: w.ledger, Policies: w.policiesOf(name), Pause: 1} // no real time passes here
	if of, lists := w.sources[name].(*stripe.Source); lists {
		a.Recover = w.recovery(of)
	}
	w.audits[name] = a
}

func (w *World) policiesOf(name recon.SourceName) []recon.Policy {
	var mine []recon.Policy
	for _, p := range w.rules {
		if p.Source == name {
			mine = append(mine, p)
		}
	}
	return mine
}

// applyPolicies says what may be done with each action; change may alter it.
func (w *World) applyPolicies(ctx context.Context, change func(*recon.Policy)) error {
	var all []recon.Policy
	for _, of := range []struct {
		action, effect string
		source         recon.SourceName
	}{
		{refundCreate, "refund", cards}, {refundGoodwill, "refund", cards}, {refundQueued, "refund", cards}, {refundTold, "refund", told},
		{payoutCreate, "payout", bank}, {letterSend, "email", letters},
	} {
		p, sheet := recon.DefaultPolicy(), w.sources[of.source].Sheet()
		p.Action, p.Source, p.Effect, p.Class = of.action, of.source, of.effect, recon.Irreversible
		if sheet.KeyLifetime > 0 {
			p.Repeat = recon.RepeatSameKey
		} else {
			p.Marks = []recon.Mark{recon.MarkReference}
		}
		if of.action == refundGoodwill || of.action == refundTold { // the latter in vain
			p.OnAbsent = recon.AbsentRelease
		}
		p.KeyLifetime, p.System, p.Accounts = sheet.KeyLifetime, sheet.System, sheet.Accounts
		p.Marker, p.RepeatAnswer = sheet.Marker, sheet.RepeatAnswer
		change(&p)
		all = append(all, p)
	}
	var err error
	w.rules, err = w.ledger.ApplyPolicies(ctx, all, w.clock.Now())
	for _, name := range sourceNames {
		if a := w.audits[name]; a != nil {
			a.Policies = w.policiesOf(name)
		}
	}
	return err
}

// openEndpoint takes the card provider's events, as the daemon does: verified, stored, answered.
func (w *World) openEndpoint() error {
	mux := http.NewServeMux()
	mux.Handle("/main", w.receives(func() *stripe.Source { return w.cards }))
	mux.Handle("/told", w.receives(func() *stripe.Source { return w.told }))
	server := httptest.NewServer(mux)
	w.onEnd(server.Close)
	add := func(name recon.SourceName, e stripetest.Endpoint) error {
		e.Mode, e.Secrets, e.Trouble, e.APIVersion = mode, []string{w.secrets[name]}, w.plan.nature.mail, w.plan.nature.version
		hook, err := w.at.cards.AddEndpoint(e)
		w.hooks[name] = append(w.hooks[name], hook)
		return err
	}
	if err := add(told, stripetest.Endpoint{URL: server.URL + "/told", Account: toldAccount, Types: []string{"refund.*"}}); err != nil {
		return err
	}
	for _, connected := range []bool{false, true}[:len(w.cards.Sheet().Accounts)] {
		err := add(cards, stripetest.Endpoint{
			URL: server.URL + "/main", Account: account, Connect: connected, Types: []string{"refund.*", "charge.dispute.*"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// accountsOf are where a source's agents may send a refund.
var accountsOf = map[recon.SourceName][]string{cards: {account, shop}, told: {toldAccount}}

// populate puts everything of the plan on the agenda.
func (w *World) populate(ctx context.Context) error {
	for _, i := range w.plan.intents {
		if i.fate.old() {
			continue
		}
		if i.onCards() {
			if err := w.addCharge(i); err != nil {
				return err
			}
		}
		if i.fate.disputed != 0 {
			w.agenda.Plan(i.at.Add(i.fate.disputed), func() error { return w.dispute(i) })
		}
		w.agenda.Plan(i.at, func() error { return w.begin(ctx, i) })
	}
	for _, t := range w.plan.troubles {
		w.agenda.Plan(epoch.Add(t.at), func() error { return t.happen(ctx, w) })
	}
	w.agenda.Plan(epoch.Add(w.plan.nature.adopts), func() error { return w.inherit(ctx) })
	w.schedule(ctx)
	return nil
}

// addCharge makes the charge that an intent gives back, in every account where it may be.
func (w *World) addCharge(i intent) error {
	for _, at := range accountsOf[i.source] {
		_, err := w.at.cards.AddCharge(stripetest.Charge{
			ID: i.parent, Account: at, Mode: mode, Amount: 4 * i.money.Minor * max(i.fate.times, 1), AmountRefunded: i.fate.unseen,
			Currency: lower(i.money.Currency), Created: w.clock.Now().Add(-day),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// live lets everything on the agenda happen.
func (w *World) live(ctx context.Context) error {
	var set time.Time
	for {
		a, ok := w.agenda.Next()
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !a.At.Equal(set) {
			w.clock.Set(a.At)
			if err := w.ledger.SetSimulatedTime(ctx, a.At); err != nil {
				return err
			}
			set = a.At
		}
		if err := a.Do(); err != nil {
			return err
		}
		w.collect(ctx)
	}
}
