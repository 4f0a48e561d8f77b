package large

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// trouble is something that befalls the company, so long after the world began.
type trouble struct {
	n    int
	kind troubleKind
	at   time.Duration
	long time.Duration
	size int // statements until a death; which fault of a read
}

// troubleKind is what it is.
type troubleKind int

const (
	cardsDown   troubleKind = iota // the card provider answers the product in one of the wrong ways
	bankDown                       // the bank does not answer as it should
	badReads                       // some reads at the card provider go wrong
	deaf                           // nobody answers where events are posted
	death                          // the product's next run dies at a statement
	otherPolicy                    // the policies are changed, and back again
	halfLists                      // lists at the card provider break off after their first page
	slackDown                      // the workspace loses requests and answers, and limits
)

func (k troubleKind) String() string {
	return [...]string{"card provider down", "bank down", "bad reads", "endpoint away", "death of the product", "policy changed", "lists break off", "Slack away"}[k]
}

// otherPolicies are those that may come into force while operations are open.
var otherPolicies = []struct {
	name   string
	change func(*recon.Policy)
}{
	{"slower, with short leases", func(p *recon.Policy) {
		p.UnresolvedAfter = recon.Duration(30 * time.Minute)
		p.Absence = recon.AbsencePolicy{Looks: 4, Over: recon.Duration(30 * time.Minute)}
		p.LeaseMax = recon.Duration(30 * time.Second)
	}},
	{"nothing is repeated or released", func(p *recon.Policy) { p.Repeat, p.OnAbsent = recon.RepeatNever, recon.AbsentMissing }},
	{"refunds are released", func(p *recon.Policy) {
		if p.Action == refundCreate {
			p.OnAbsent = recon.AbsentRelease
		}
	}},
	{"two looks are enough", func(p *recon.Policy) {
		p.Absence = recon.AbsencePolicy{Looks: 2, Over: recon.Duration(5 * time.Minute)}
	}},
}

// drawTroubles draws what befalls a world, most of it about when agents are busy.
func drawTroubles(rng *rand.Rand, n nature, busy []time.Duration) []trouble {
	var list []trouble
	add := func(kind troubleKind, at, long time.Duration) {
		at = max(at, 0)
		list = append(list, trouble{n: len(list), kind: kind, at: at.Truncate(time.Minute), long: long.Truncate(time.Minute), size: rng.IntN(1000)})
	}
	within := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	about := func() time.Duration { return busy[rng.IntN(len(busy))] + within(-20*time.Minute, time.Hour) }
	for _, kind := range []troubleKind{cardsDown, bankDown} {
		if rng.IntN(2) == 0 {
			add(kind, about(), within(5*time.Minute, 5*time.Hour))
		}
	}
	if n.badReads > 0 {
		add(badReads, 0, time.Duration(n.days)*day)
	}
	if rng.IntN(2) == 0 {
		add(deaf, about(), within(time.Hour, 4*day))
	}
	for range rng.IntN(6) {
		add(death, about(), 0)
	}
	if rng.IntN(2) == 0 {
		add(death, within(0, 6*day), 0)
	}
	if rng.IntN(2) == 0 {
		add(otherPolicy, about(), within(10*time.Minute, 3*day))
	}
	if rng.IntN(2) == 0 {
		add(halfLists, about(), within(time.Hour, 12*time.Hour))
	}
	if rng.IntN(2) == 0 {
		add(slackDown, about(), within(time.Hour, day))
	}
	// Away at the first audit, and again when the first re-verification asks for what no
	// audit saw: who takes blind for absent calls that missing.
	for _, kind := range []troubleKind{cardsDown, bankDown} {
		if rng.IntN(2) == 0 {
			add(kind, firstAudit()-10*time.Minute, within(20*time.Minute, time.Hour))
			add(kind, firstReverification()-time.Minute, within(30*time.Minute, 5*time.Hour))
			list[len(list)-1].size %= likeAbsent
		}
	}
	return list
}

// happen begins a trouble, and plans its end.
func (t trouble) happen(ctx context.Context, w *World) error {
	w.tally.fault(t.kind.String())
	now := w.clock.Now()
	switch t.kind {
	case cardsDown:
		w.outage(cards, now, now.Add(t.long))
		w.spoilReads(reading[t.size%len(reading)], t.long)
	case bankDown:
		w.outage(bank, now, now.Add(t.long))
		kinds := []httpapitest.Fault{
			httpapitest.TooMany, httpapitest.Broken, httpapitest.Proxy, httpapitest.Cut, httpapitest.NotJSON, httpapitest.Empty, httpapitest.Closes,
			httpapitest.NoKey, httpapitest.Forbidden, httpapitest.Redirects, httpapitest.NoBody, httpapitest.HTML404, httpapitest.HTML200,
		}
		w.at.bank.Break(kinds[t.size%len(kinds)], t.size%2)
		w.agenda.Plan(now.Add(t.long), func() error { w.at.bank.Mend(); return nil })
	case badReads:
		for _, f := range reading {
			f.Method, f.Chance, f.Times = "GET", w.plan.nature.badReads/float64(len(reading)), stripetest.Always
			w.at.cards.Script(f)
		}
	case deaf:
		w.deaf = true
		w.agenda.Plan(now.Add(t.long), func() error { w.deaf = false; return nil })
	case death:
		w.dying = 1 + t.size%100
	case halfLists:
		f := reading[t.size%len(reading)]
		f.Page = 2
		w.spoilReads(f, t.long)
	case slackDown:
		kinds := []slacktest.Fault{
			{LoseAnswer: true}, {LoseRequest: true}, {Status: http.StatusTooManyRequests, RetryAfter: 30 * time.Second}, {Status: http.StatusBadGateway},
			{Error: "internal_error"},
		}
		for n, f := range kinds {
			f.Method, f.After, f.Times = "chat.postMessage", n+t.size%3, 1
			w.slack.Spoil(f)
		}
		w.agenda.Plan(now.Add(t.long), func() error { w.slack.Mend(); return nil })
	case otherPolicy:
		other := otherPolicies[t.size%len(otherPolicies)]
		w.tally.fault("policy changed: " + other.name)
		w.agenda.Plan(now.Add(t.long), func() error { return w.applyPolicies(ctx, func(*recon.Policy) {}) })
		return w.applyPolicies(ctx, other.change)
	}
	return nil
}
