package large

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// The sources. Of the one that is told the product knows what events tell, and nothing else:
// its key opens no object and no list of them.
const (
	cards   = recon.SourceName("stripe-main")
	told    = recon.SourceName("stripe-told")
	bank    = recon.SourceName("bank")
	letters = recon.SourceName("letters")
)

// The actions of the company. Goodwill refunds may be released for another try; queued
// ones are recorded together with the change that they belong to, and a worker sends them.
const (
	refundCreate   = "refund.create"
	refundGoodwill = "refund.goodwill"
	refundQueued   = "refund.queued"
	refundTold     = "refund.told"
	payoutCreate   = "payout.create"
	letterSend     = "letter.send"
)

const day = 24 * time.Hour

// toldEvery is how many intents of the card provider there are for each that may be made
// where only events tell of it.
const toldEvery = 5

// epoch is when every world begins: a Monday.
var epoch = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// Plan is everything that happens to a world, drawn from a seed before it begins.
type Plan struct {
	Seed       uint64
	Operations int
	nature     nature
	intents    []intent
	troubles   []trouble
}

// nature is what a world's providers and the company are like.
type nature struct {
	cadence   time.Duration // of sweeps
	skew      time.Duration // of the card provider's clock against ours
	lag       stripetest.Lag
	bankLag   time.Duration
	postLag   time.Duration // 0: the letter service does not say, so its silence proves nothing
	pageCap   int           // of the card provider's lists
	mail      stripetest.Trouble
	badReads  float64       // the share of the product's reads that go wrong by themselves
	days      int           // until the world ends
	storm     int           // per cent of the weights of what goes wrong with intents
	adopts    time.Duration // when the company's own records are imported
	looksBack bool          // all of what was imported is audited at once
	shops     bool          // some of the company's refunds are its connected account's
	version   string        // of the card provider's events; empty: its newest
	feed      bool          // the source that is told lists its events too, so that lost ones are made up for
}

// intent is one thing that an agent means to do.
type intent struct {
	n      int
	id     recon.OperationID
	source recon.SourceName
	action string
	target string
	parent string
	// account is where the card provider is to do it. An unnamed one the agent does not tell the
	// ledger; where there are several the product then cannot know it.
	account string
	unnamed bool
	money   recon.Money // zero for letters
	at      time.Time
	fate    fate
	guise   guise
	// twinOf is the intent that this one repeats under another key, threeOf the first of the
	// three that it is one of; -1: none.
	twinOf, threeOf int
}

// onCards reports whether the card provider does it, whichever source sees it there.
func (i intent) onCards() bool { return i.source == cards || i.source == told }

// guise is how an agent acts.
type guise int

const (
	guarded  guise = iota // through package guard
	bare                  // through the ledger's three functions alone
	queued                // recorded in a transaction, sent by a worker
	imported              // done before the world began, and imported
)

// The busy hours: agents act in bursts, as batch jobs do, so that one sweep serves many.
const (
	bursts    = 2
	burstLong = 2 * time.Minute
	busyDays  = 3
)

// Draw makes the plan of a seed. The same seed and number make the same plan.
func Draw(seed uint64, operations int) *Plan {
	rng := rand.New(rand.NewPCG(seed, 0x6c61726765))
	p := &Plan{Seed: seed, Operations: operations, nature: drawNature(rng)}
	starts := make([]time.Duration, bursts)
	for n := range starts {
		starts[n] = (time.Duration(rng.Int64N(int64(busyDays*day))) / time.Minute) * time.Minute
	}
	now := (operations + 4) / 5 // what is left is from before
	deck := pack{fates, p.nature.storm, plain}.deal(rng, now)
	deck = append(deck, pack{oldFates, 40, recordedRight}.deal(rng, operations-now)...)
	for n := range operations {
		i := p.drawIntent(rng, n, deck[n])
		if i.fate.old() {
			drawHistory(rng, &i)
			p.intents = append(p.intents, i)
			continue
		}
		i.at = epoch.Add(starts[rng.IntN(bursts)] + time.Duration(rng.Int64N(int64(burstLong/(20*time.Second))))*20*time.Second)
		p.intents = append(p.intents, i)
	}
	p.pairTwins()
	p.joinTriples()
	slices.SortStableFunc(p.intents, func(a, b intent) int { return a.at.Compare(b.at) })
	p.troubles = drawTroubles(rng, p.nature, starts)
	p.nature.feed = rng.IntN(2) == 0
	p.nature.version = []string{"", "2024-10-28.acacia", "2029-01-01.next"}[rng.IntN(3)]
	p.nature.lag.Retrieve = []time.Duration{0, p.nature.lag.List}[rng.IntN(2)]
	return p
}

// Only keeps the intents and troubles of these numbers, in the plan's order; nil keeps all.
// It is how a failing world is made small.
func (p *Plan) Only(intents, troubles []int) *Plan {
	small := *p
	keep := func(list []int, n int) bool { return list == nil || slices.Contains(list, n) }
	small.intents = slices.DeleteFunc(slices.Clone(p.intents), func(i intent) bool { return !keep(intents, i.n) })
	small.troubles = slices.DeleteFunc(slices.Clone(p.troubles), func(t trouble) bool { return !keep(troubles, t.n) })
	return &small
}

// Parts are the numbers of all intents and troubles.
func (p *Plan) Parts() (intents, troubles []int) {
	for _, i := range p.intents {
		intents = append(intents, i.n)
	}
	for _, t := range p.troubles {
		troubles = append(troubles, t.n)
	}
	return intents, troubles
}

func drawNature(rng *rand.Rand) nature {
	pick := func(list ...time.Duration) time.Duration { return list[rng.IntN(len(list))] }
	n := nature{
		cadence: pick(time.Minute, 5*time.Minute, 5*time.Minute, 10*time.Minute, 10*time.Minute, 10*time.Minute, 10*time.Minute, 10*time.Minute),
		skew:    time.Duration(rng.Int64N(181)-90) * time.Second,
		bankLag: pick(0, time.Minute, 5*time.Minute, 30*time.Minute),
		postLag: pick(0, 2*time.Minute, 10*time.Minute),
		pageCap: []int{7, 25, 50, 100}[rng.IntN(4)],
		days:    40,
	}
	lag := pick(0, 10*time.Second, 30*time.Second)
	n.lag = stripetest.Lag{List: lag, Events: lag, Search: 2 * lag}
	n.mail = stripetest.Trouble{
		Lost: share(rng, 0.3), Twice: share(rng, 0.3), Forged: share(rng, 0.1), Early: share(rng, 0.3),
		Delay: pick(0, time.Minute, 30*time.Minute, time.Hour), Shuffled: rng.IntN(2) == 0,
	}
	if rng.IntN(2) == 0 {
		n.badReads = 0.05 * rng.Float64()
	}
	if rng.IntN(10) == 0 {
		n.days = 112
	}
	n.shops = rng.IntN(2) == 0
	n.storm = []int{100, 30, 10, 10, 10}[rng.IntN(5)]
	n.looksBack = rng.IntN(4) == 0
	n.adopts = time.Duration(rng.IntN(48)) * time.Hour
	return n
}

// share is nothing in half of all worlds, else up to most.
func share(rng *rand.Rand, most float64) float64 {
	if rng.IntN(2) == 0 {
		return 0
	}
	return most * rng.Float64()
}

var currencies = []string{"EUR", "USD", "GBP", "JPY"}

func (p *Plan) drawIntent(rng *rand.Rand, n int, f fate) intent {
	i := intent{
		n: n, id: recon.OperationID(fmt.Sprintf("op_%d_%05d", p.Seed, n)), fate: f, twinOf: -1, threeOf: -1,
		target: fmt.Sprintf("order:%d", 10_000+n),
		money:  recon.Money{Minor: 100 + rng.Int64N(900)*10, Currency: currencies[rng.IntN(len(currencies))]},
	}
	roll := rng.IntN(100)
	if i.source = f.place(roll); i.source == cards && n%toldEvery == 3 && f.tellable() && !f.old() {
		i.source = told
	}
	switch i.source {
	case cards:
		i.action, i.parent = f.action, fmt.Sprintf("ch_%d_%05d", p.Seed, n)
		if i.action == "" {
			i.action = refundCreate
		}
		i.account, i.unnamed = account, true
		if p.nature.shops {
			i.account, i.unnamed = []string{account, shop}[n%2], rng.IntN(8) == 0 && !f.elsewhere
		}
	case told:
		i.action, i.parent, i.account = refundTold, fmt.Sprintf("ch_%d_%05d", p.Seed, n), toldAccount
	case bank:
		i.action, i.parent, i.money.Currency = payoutCreate, fmt.Sprintf("acc_%d", n), "EUR"
	case letters:
		i.action, i.money = letterSend, recon.Money{}
	}
	i.guise = guarded
	if rng.IntN(2) == 0 || f.needsSteps() {
		i.guise = bare
	}
	if i.source == cards && i.action == refundCreate && !f.old() && f.name != twin.name && f.name != triple.name && len(f.tries) == 1 && f.tries[0].crash == survives && rng.IntN(5) == 0 {
		i.guise, i.action = queued, refundQueued
	}
	return i
}

// pairTwins makes every second intent of fate [twin] the same intent as another one, under
// another key: what an agent does that forgot what it did.
func (p *Plan) pairTwins() {
	last := -1
	for n := range p.intents {
		i := &p.intents[n]
		if i.fate.name != twin.name {
			continue
		}
		if last < 0 {
			last = n
			continue
		}
		of := p.intents[last]
		i.twinOf, i.target, i.money, i.at = of.n, of.target, of.money, of.at.Add(10*time.Second)
		i.account, i.unnamed = of.account, of.unnamed
		last = -1
	}
}

// joinTriples gives three intents each of fate [triple] one target.
func (p *Plan) joinTriples() {
	var last []int
	for n := range p.intents {
		if p.intents[n].fate.name != triple.name {
			continue
		}
		if last = append(last, n); len(last) < 3 {
			continue
		}
		for _, other := range last {
			p.intents[other].target = p.intents[last[0]].target
			p.intents[other].threeOf = p.intents[last[0]].n
			p.intents[other].account, p.intents[other].unnamed = p.intents[last[0]].account, p.intents[last[0]].unnamed
		}
		last = nil
	}
}

// String tells the whole plan, a line for each part, for whoever looks into a failure.
func (p *Plan) String() string {
	out := fmt.Sprintf("seed %d: %+v\n", p.Seed, p.nature)
	for _, t := range p.troubles {
		out += fmt.Sprintf("  trouble %d: %s at %s for %s (%d)\n", t.n, t.kind, epoch.Add(t.at).Format(time.DateTime), t.long, t.size)
	}
	for _, i := range p.intents {
		out += fmt.Sprintf("  intent %d: %s %s of %s for %s at %s: %s\n", i.n, i.id, i.action, i.money, i.target, i.at.Format(time.DateTime), i.fate.name)
	}
	return out
}
