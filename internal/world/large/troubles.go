package large

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

// trouble is something that befalls the company, so long after the world began.
type trouble struct {
	n    int
	kind troubleKind
	at   time.Duration
	long time.Duration
	size int // which of its sort: a fault of a read, a way to die
}

// troubleKind is what it is.
type troubleKind int

const (
	cardsDown     troubleKind = iota // the card provider answers the product in one of the wrong ways
	bankDown                         // the bank does not answer as it should
	lettersDown                      // the letter service does not
	accountDown                      // one account of the card provider does not, and the others do
	badReads                         // some reads at the card provider go wrong
	deaf                             // nobody answers where events are posted
	death                            // a process of the product dies
	otherPolicy                      // the policies are changed, and back again
	halfLists                        // lists at the card provider break off after their first page
	slackDown                        // the workspace loses requests and answers, and limits
	slackShut                        // nobody can post in the channel
	messagesGone                     // people delete messages
	secretsRolled                    // events are signed with other secrets
	eventsResent                     // old events come once more
)

func (k troubleKind) String() string {
	return [...]string{
		"card provider down", "bank down", "letter service down", "one account at the card provider down", "bad reads", "endpoint away", "death of the product",
		"policy changed", "lists break off", "Slack away", "channel shut", "messages deleted", "secrets rolled", "old events sent again",
	}[k]
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
		list = append(list, trouble{n: len(list), kind: kind, at: at.Truncate(time.Minute), long: long.Truncate(time.Minute), size: rng.IntN(1_000_000)})
	}
	within := func(from, to time.Duration) time.Duration { return from + time.Duration(rng.Int64N(int64(to-from))) }
	about := func() time.Duration { return busy[rng.IntN(len(busy))] + within(-20*time.Minute, time.Hour) }
	for _, kind := range []troubleKind{cardsDown, bankDown, lettersDown, accountDown} {
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
	for range rng.IntN(3) {
		add(death, 0, 0) // in what is done once and early, too
	}
	if rng.IntN(2) == 0 {
		add(otherPolicy, about(), within(10*time.Minute, 3*day))
	}
	if rng.IntN(2) == 0 {
		add(halfLists, about(), within(time.Hour, 12*time.Hour))
	}
	for _, kind := range []troubleKind{slackDown, slackShut} {
		if rng.IntN(2) == 0 {
			add(kind, about(), within(time.Hour, day))
		}
	}
	if rng.IntN(3) == 0 {
		add(messagesGone, about()+within(0, 2*day), 0)
	}
	if rng.IntN(2) == 0 {
		add(secretsRolled, about(), within(10*time.Minute, 8*time.Hour))
	}
	if rng.IntN(2) == 0 {
		add(eventsResent, about()+within(0, 5*day), 0)
	}
	// Away at the first audit, and again when the first re-verification asks for what no
	// audit saw: who takes blind for absent calls that missing.
	for _, kind := range []troubleKind{cardsDown, bankDown, lettersDown} {
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
	over := w.clock.Now().Add(t.long)
	switch t.kind {
	case cardsDown:
		w.outage(cards, w.clock.Now(), over)
		w.spoilReads(reading[t.size%len(reading)], t.long)
	case bankDown:
		w.breaks(bank, w.at.bank, t)
	case lettersDown:
		w.breaks(letters, w.at.post, t)
	case accountDown:
		w.accountAway(t)
	case badReads:
		w.someReadsFail()
	case deaf:
		w.deaf = true
		w.agenda.Plan(over, func() error { w.deaf = false; return nil })
	case death:
		in, e := deathOf(t.size)
		w.dying[in] = e
	case halfLists:
		f := reading[t.size%len(reading)]
		f.Page = 2
		w.spoilReads(f, t.long)
	case slackDown:
		w.slackAway(t, over)
	case slackShut:
		w.channelShut(t, over)
	case messagesGone:
		w.deleteMessages(t)
	case secretsRolled:
		return w.rollSecrets(t)
	case eventsResent:
		return w.resend(t)
	case otherPolicy:
		other := otherPolicies[t.size%len(otherPolicies)]
		w.tally.fault("policy changed: " + other.name)
		w.agenda.Plan(over, func() error { return w.applyPolicies(ctx, func(*recon.Policy) {}) })
		return w.applyPolicies(ctx, other.change)
	}
	return nil
}

// plainFault is how a plain provider that is down answers, after how many good answers.
func (t trouble) plainFault() (f httpapitest.Fault, good int) {
	all := httpapitest.Faults
	return all[t.size%len(all)], t.size / len(all) % 2
}
