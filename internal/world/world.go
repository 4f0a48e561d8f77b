package world

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	sourceName  = recon.SourceName("stripe-main")
	destination = "payments-recon"
	account     = "acct_northwind"
	mode        = "live"
	marker      = "operation_id"

	// The provider shows a new object in its lists this much later.
	readLag = 20 * time.Second

	// Keys of the fake provider. The agent's may write, the product's only read.
	agentKey   = "sk_live_TESTONLYagent"
	productKey = "rk_live_TESTONLYreader"
)

// Options say which world to simulate, and in which database.
type Options struct {
	Seed       uint64
	Operations int
	// DatabaseURL is an empty database of its own: the schema is made in it, with
	// simulated time.
	DatabaseURL string
	Log         *slog.Logger // nil: silent
}

// World is a simulation while it runs.
type World struct {
	options Options
	clock   *Clock
	agenda  *Agenda
	ledger  *ledger.Ledger
	stripe  *stripetest.Server
	slack   *slacktest.Server
	client  *stripego.Client // the agent's
	sweeps  *sweep.Sweep
	planner *escalation.Planner
	telling bool // the last planning found something to do
	deliver *escalation.Deliverer
	told    map[recon.OperationID][]string // what the agent was told, in order
	intents []intent
	lives   map[string]stripetest.Life // by operation
	calls   int                        // requests that the product made
	closing []func()
}

// Run simulates a world from its beginning to its end and judges it. The error is one
// of the simulation; what the product did wrong is in the verdict.
func Run(ctx context.Context, o Options) (Verdict, error) {
	if o.Operations < 1 || o.Operations > MaxOperations {
		return Verdict{}, fmt.Errorf("operations: %d is not between 1 and %d", o.Operations, MaxOperations)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	w := &World{options: o, clock: &Clock{}, agenda: &Agenda{}, told: map[recon.OperationID][]string{}, lives: map[string]stripetest.Life{}}
	w.clock.Set(epoch)
	defer w.close()
	if err := w.build(ctx); err != nil {
		return Verdict{}, err
	}
	if err := w.populate(ctx); err != nil {
		return Verdict{}, err
	}
	if err := w.live(ctx); err != nil {
		return Verdict{}, err
	}
	return w.judge(ctx)
}

// MaxOperations bounds a world, so that a slip of the keyboard does not fill a disk.
const MaxOperations = 20_000

// build starts the provider, the workspace and the product.
func (w *World) build(ctx context.Context) error {
	if err := w.openLedger(ctx); err != nil {
		return err
	}
	var err error
	w.stripe, err = stripetest.Start(stripetest.Options{
		Now: w.clock.Now, Seed: w.options.Seed, Lag: stripetest.Lag{List: readLag, Events: readLag, Search: 2 * readLag},
		Accounts: []stripetest.Account{{ID: account, Mode: mode, Key: agentKey, ReadKey: productKey}},
		Life:     w.lifeOf,
	})
	if err != nil {
		return err
	}
	w.closing = append(w.closing, w.stripe.Close)
	w.slack, err = slacktest.Start(slacktest.Options{Now: w.clock.Now, Channels: []string{destination}})
	if err != nil {
		return err
	}
	w.closing = append(w.closing, w.slack.Close)
	w.client = NewAgentClient(w.stripe.URL(), agentKey)
	source, err := w.newSource()
	if err != nil {
		return err
	}
	if err := w.applyPolicies(ctx, source.Sheet()); err != nil {
		return err
	}
	w.sweeps = &sweep.Sweep{
		Ledger: w.ledger, Source: source, Holder: "demo", Log: w.options.Log,
	}
	return w.newDeliverer()
}

func (w *World) openLedger(ctx context.Context) error {
	if err := migrations.Up(ctx, w.options.DatabaseURL); err != nil {
		return err
	}
	if err := migrations.SimulateTime(ctx, w.options.DatabaseURL, epoch); err != nil {
		return err
	}
	// Thousands of small sweeps in a few seconds: statements are planned once here.
	l, err := ledger.Open(ctx, ledger.Options{URL: w.options.DatabaseURL + "&default_query_exec_mode=cache_statement"})
	if err != nil {
		return err
	}
	w.ledger = l
	w.closing = append(w.closing, l.Close)
	return nil
}

// newSource is the product's view of the provider, with a key that only reads.
func (w *World) newSource() (*stripe.Source, error) {
	return stripe.New(sourceName, stripe.Settings{
		System: "stripe", Account: account, Mode: mode, Marker: marker, APIURL: w.stripe.URL(),
		APIKey: recon.NewSecret(productKey), PerSecond: 1_000_000, // no real time passes here
	}, stripe.Options{OnRequest: func(string, string) { w.calls++ }})
}

func (w *World) newDeliverer() error {
	n, err := slack.New(destination, slack.Settings{
		Channel: "#" + destination, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: w.slack.URL(),
	})
	if err != nil {
		return err
	}
	w.planner = &escalation.Planner{
		Desk: w.ledger, Policy: escalation.Policy{Everybody: []string{destination}}, Now: w.clock.Now, Log: w.options.Log,
	}
	w.deliver = &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{destination: n},
		Outbox:    w.ledger, Stories: w.ledger, Now: w.clock.Now, Log: w.options.Log,
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	return nil
}

// applyPolicies says what may be done with the shop's two actions.
func (w *World) applyPolicies(ctx context.Context, sheet recon.Sheet) error {
	var policies []recon.Policy
	for _, action := range []string{refundCreate, refundGoodwill} {
		p := recon.DefaultPolicy()
		p.Action, p.Source, p.Effect, p.Class = action, sourceName, "refund", recon.Irreversible
		p.Repeat, p.AmountRequired, p.OneOpen = recon.RepeatSameKey, true, true
		p.KeyLifetime = sheet.KeyLifetime
		if action == refundGoodwill {
			p.OnAbsent = recon.AbsentRelease
		}
		p.System, p.Accounts, p.Marker, p.RepeatAnswer = sheet.System, sheet.Accounts, sheet.Marker, sheet.RepeatAnswer
		policies = append(policies, p)
	}
	_, err := w.ledger.ApplyPolicies(ctx, policies, w.clock.Now())
	return err
}

// populate draws the intents, makes the charges that they will refund, and puts
// everything on the agenda.
func (w *World) populate(ctx context.Context) error {
	w.intents = draw(w.options.Seed, w.options.Operations)
	for _, i := range w.intents {
		w.lives[string(i.id)] = i.fate.life
		total := 3 * i.money.Minor * max(i.fate.times, 1)
		if i.fate.over {
			total = i.money.Minor / 2
		}
		_, err := w.stripe.AddCharge(stripetest.Charge{
			ID: i.charge, Account: account, Mode: mode, Amount: total,
			Currency: strings.ToLower(i.money.Currency), Created: epoch.Add(-24 * time.Hour),
		})
		if err != nil {
			return err
		}
		w.agenda.Plan(i.at, func() error { return w.begin(ctx, i) })
	}
	w.stripe.Script(stripetest.Fault{
		Kind: stripetest.ProxyPage, Status: 503,
		From: epoch.Add(outageStart), Until: epoch.Add(outageEnd), Times: stripetest.Always,
	})
	for t := epoch.Add(time.Minute); !t.After(epoch.Add(worldHours)); t = t.Add(time.Minute) {
		w.agenda.Plan(t, func() error { return w.tick(ctx) })
	}
	return nil
}

// live lets everything on the agenda happen.
func (w *World) live(ctx context.Context) error {
	for {
		a, ok := w.agenda.Next()
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		w.clock.Set(a.At)
		if err := w.ledger.SetSimulatedTime(ctx, a.At); err != nil {
			return err
		}
		if err := a.Do(); err != nil {
			return fmt.Errorf("at %s: %w", a.At.Format(time.RFC3339), err)
		}
	}
}

// tick is one minute of the daemon: the open operations, the closed ones on their
// ladder, and the messages that are due. A minute in which nothing is due is passed
// over, which is most of a simulated night.
func (w *World) tick(ctx context.Context) error {
	idle, err := w.idle(ctx)
	if err != nil || idle {
		return err
	}
	options := sweep.Options{Now: w.clock.Now, Tick: w.clock.Now().Format(time.RFC3339)}
	out, err := w.sweeps.Run(ctx, options)
	if err == nil && out.SetAside > 0 {
		err = fmt.Errorf("%d conclusions could not be recorded", out.SetAside)
	}
	if err == nil && w.clock.Now().Minute() == 0 {
		_, err = w.sweeps.Reverify(ctx, options)
	}
	if err != nil {
		return err
	}
	return w.notify(ctx)
}

// notify plans who is told, and delivers until nothing is due.
func (w *World) notify(ctx context.Context) error {
	planned, err := w.planner.Pass(ctx)
	if err != nil {
		return err
	}
	w.telling = planned > 0
	for {
		n, err := w.deliver.Pass(ctx)
		if err != nil || n == 0 {
			return err
		}
	}
}

// idle reports whether a sweep would have nothing to do. While the provider is down
// there are probes, on the full hour closed operations, and what was planned a minute
// ago may wait for others that opened with it.
func (w *World) idle(ctx context.Context) (bool, error) {
	now := w.clock.Now()
	since := now.Sub(epoch)
	if now.Minute() == 0 || w.telling || since >= outageStart && since < outageEnd+40*time.Minute {
		return false, nil
	}
	due, err := w.ledger.Due(ctx, ledger.Scope{Source: sourceName}, now, 1)
	return len(due) == 0, err
}

// close ends what build started, last first.
func (w *World) close() {
	for n := len(w.closing) - 1; n >= 0; n-- {
		w.closing[n]()
	}
}
