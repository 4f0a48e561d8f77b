package large

import (
	"math/rand/v2"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// crash is where an agent's process dies within one try.
type crash int

const (
	survives    crash = iota
	diesUnsent        // after the claim, before the call
	diesUntold        // after the call, before its answer is recorded
	diesAtOnce        // at one of its statements, before or after anything
	diesForever       // opened, and never tried
)

// try is one time that an agent acts on its intent, so long after it was opened.
type try struct {
	after time.Duration
	crash crash
}

// mishap is what befalls one request that an agent sends.
type mishap int

const (
	fine        mishap = iota
	answerLost         // done, and no usable answer came
	requestLost        // not done, and no usable answer came
	storedDone         // a 500 that is stored under the key, and it was done
	storedNot          // a 500 that is stored under the key, and it was not
	turnedAway         // definitely not let in: 429, 401, 403
	landsLate          // no answer, and the work lands minutes later
	landsDays          // no answer, and the work lands days later, when everybody has given it up
	refused            // a definite no
	storedLate         // a 500 that is stored under the key, and the provider does it by itself minutes later
	gaveUp             // done, but whoever sent it had gone before any answer
)

// life is what becomes of an effect after it was made.
type life int

const (
	lasts              life = iota
	pendsThenOK             // in flight for hours, then done
	pendsThenBad            // in flight for hours, then failed
	failsLate               // done, and failed days later
	waitsThenCancelled      // waits for the customer, then cancelled
)

// fate is what goes wrong with an intent. What the truth then demands is for the judge to
// derive from what truly happened, not written here.
type fate struct {
	name   string
	weight int // of 1,000; the rest is the plain fate's
	only   []recon.SourceName
	action string // of the card provider; empty: refund.create
	tries  []try
	// befalls are the mishaps of the requests, in order; those after them go well.
	befalls []mishap
	life    life
	times   int64 // the amount that is sent against the one that was recorded; 0: the same
	// again makes the effect once more by hand, bearing the same reference.
	again bool
	// stray makes an effect by hand that bears none.
	stray bool
	// unseen is what the charge was refunded before by something that nobody can see.
	unseen int64
	// elsewhere sends it to the company's other account, where it has one.
	elsewhere bool
	// rehearsed makes it in test mode too, bearing the same reference: that proves nothing.
	rehearsed bool
	// stall is how long an agent sleeps between its claim and its call, and skew how far its
	// clock is ahead of the ledger's: by that clock it decides whether it may still send.
	stall, skew time.Duration
	// disputed is when the customer's bank disputes the charge, counted from the intent; 0: never.
	disputed time.Duration
	// record is what the company has written down of what it did before; see [record].
	record record
	// late reports the first try's answer long after its lease.
	late bool
}

// needsSteps reports whether the fate needs an agent that dies between two of its calls.
func (f fate) needsSteps() bool {
	for _, t := range f.tries {
		if t.crash == diesUnsent || t.crash == diesUntold || t.crash == diesForever {
			return true
		}
	}
	return f.late || f.byOwnClock() || len(f.tries) == 0
}

// tellable reports whether the fate can befall an operation of which only events tell: what
// it needs is neither a list nor another account.
func (f fate) tellable() bool {
	return f.action == "" && f.name != twin.name && f.name != triple.name && !f.stray && f.unseen == 0 && !f.elsewhere && !f.rehearsed && f.disputed == 0
}

// byOwnClock reports whether the agent goes by send_before and its own clock, as it should not:
// the ledger tells it a duration too.
func (f fate) byOwnClock() bool { return f.stall > 0 || f.skew != 0 }

// place is the source that the intent is for.
func (f fate) place(roll int) recon.SourceName {
	all := []recon.SourceName{cards, cards, cards, bank, letters}
	if len(f.only) > 0 {
		all = f.only
	}
	return all[roll%len(all)]
}

var (
	onCards  = []recon.SourceName{cards}
	onMoney  = []recon.SourceName{cards, cards, bank}
	soon     = try{after: 0}
	later    = try{after: 3 * time.Minute}
	hours    = try{after: 62 * time.Minute}
	tomorrow = try{after: 26 * time.Hour} // when the card provider has forgotten the key
)

var plain = fate{name: "answered at once", tries: []try{soon}}

// twin is the fate of two intents that are one; see pairTwins.
var twin = fate{name: "the same intent under two keys", weight: 12, only: onCards, tries: []try{soon}}

// triple is the fate of three intents for one target that all come to nothing; see joinTriples.
var triple = fate{name: "fails again and again", weight: 9, only: onCards, tries: []try{soon}, life: pendsThenBad}

// fates lists everything else. Order and weights are part of what a seed means.
var fates = []fate{
	{name: "answer lost", weight: 60, tries: []try{soon}, befalls: []mishap{answerLost}},
	{name: "answer lost, asked again", weight: 40, tries: []try{soon, later}, befalls: []mishap{answerLost}},
	{name: "request lost, sent again", weight: 30, tries: []try{soon, later}, befalls: []mishap{requestLost}},
	{name: "request and answer lost", weight: 15, tries: []try{soon, later, hours}, befalls: []mishap{requestLost, answerLost}},
	{name: "request lost for good", weight: 15, tries: []try{soon}, befalls: []mishap{requestLost}},
	{name: "request lost, released, sent again", weight: 10, only: onCards, action: refundGoodwill, tries: []try{soon, hours, {after: 70 * time.Minute}, {after: 2 * time.Hour}}, befalls: []mishap{requestLost}},
	{name: "request lost, released, never sent", weight: 5, only: onCards, action: refundGoodwill, tries: []try{soon}, befalls: []mishap{requestLost}},
	{name: "stored 500, and it was done", weight: 15, only: onCards, tries: []try{soon, later}, befalls: []mishap{storedDone}},
	{name: "stored 500, and it was not", weight: 5, only: onCards, tries: []try{soon, later}, befalls: []mishap{storedNot}},
	{name: "lands late", weight: 15, only: onCards, tries: []try{soon, {after: 70 * time.Second}}, befalls: []mishap{landsLate}},
	{name: "stored 500, and it was done late", weight: 6, only: onCards, tries: []try{soon, {after: 70 * time.Second}}, befalls: []mishap{storedLate}},
	{name: "gave up waiting", weight: 8, only: onCards, tries: []try{soon}, befalls: []mishap{gaveUp}},
	{name: "gave up waiting, asked again", weight: 6, only: onCards, tries: []try{soon, later}, befalls: []mishap{gaveUp}},
	{name: "turned away, then sent", weight: 20, tries: []try{soon, later}, befalls: []mishap{turnedAway}},
	{name: "turned away for good", weight: 3, tries: []try{soon}, befalls: []mishap{turnedAway}},
	{name: "refused", weight: 15, tries: []try{soon}, befalls: []mishap{refused}},
	{name: "answer lost, then turned away", weight: 10, tries: []try{soon, later}, befalls: []mishap{answerLost, turnedAway}},
	{name: "request lost, then refused", weight: 5, only: onCards, tries: []try{soon, later}, befalls: []mishap{requestLost, refused}},
	{name: "died before the call", weight: 8, tries: []try{{crash: diesUnsent}}},
	{name: "died after the call", weight: 20, tries: []try{{crash: diesUntold}}},
	{name: "died after the call, another one goes on", weight: 10, tries: []try{{crash: diesUntold}, later}},
	{name: "died at a statement", weight: 10, tries: []try{{crash: diesAtOnce}}},
	{name: "died at a statement, another one goes on", weight: 15, tries: []try{{crash: diesAtOnce}, later}},
	{name: "never sent", weight: 5, tries: []try{{crash: diesForever}}},
	{name: "stalled past its lease, and told the truth late", weight: 10, tries: []try{soon}, late: true},
	{name: "woke after the key had expired", weight: 6, only: onCards, tries: []try{soon, tomorrow}, befalls: []mishap{requestLost}},
	{name: "woke after the key had expired, and it was done", weight: 6, only: onCards, tries: []try{soon, tomorrow}, befalls: []mishap{answerLost}},
	{name: "pends for hours, then done", weight: 15, only: onCards, tries: []try{soon}, life: pendsThenOK},
	{name: "pends for hours, then failed", weight: 8, only: onCards, tries: []try{soon}, life: pendsThenBad},
	{name: "answer lost, pends, then failed", weight: 5, only: onCards, tries: []try{soon}, befalls: []mishap{answerLost}, life: pendsThenBad},
	{name: "waits for the customer, then cancelled", weight: 6, only: onCards, tries: []try{soon}, life: waitsThenCancelled},
	{name: "fails days later", weight: 12, tries: []try{soon}, life: failsLate},
	{name: "answer lost, and fails days later", weight: 6, tries: []try{soon}, befalls: []mishap{answerLost}, life: failsLate},
	{name: "another amount was sent", weight: 8, only: onMoney, tries: []try{soon}, befalls: []mishap{answerLost}, times: 10},
	{name: "another amount was sent and answered", weight: 6, only: onMoney, tries: []try{soon}, times: 3},
	{name: "made once more by hand", weight: 8, only: onMoney, tries: []try{soon}, again: true},
	{name: "answer lost, and made once more by hand", weight: 5, only: onMoney, tries: []try{soon}, befalls: []mishap{answerLost}, again: true},
	{name: "another one made by hand beside it", weight: 10, only: onMoney, tries: []try{soon}, stray: true},
	{name: "lands days later", weight: 5, only: []recon.SourceName{bank}, tries: []try{soon}, befalls: []mishap{landsDays}},
	{name: "the charge counts a refund that nobody sees", weight: 4, only: onCards, tries: []try{soon}, unseen: 70},
	{name: "made in the other account", weight: 6, only: onCards, tries: []try{soon}, befalls: []mishap{answerLost}, elsewhere: true},
	{name: "request lost for good, and rehearsed in test mode", weight: 6, only: onCards, tries: []try{soon}, befalls: []mishap{requestLost}, rehearsed: true},
	{name: "refused, for the charge is disputed", weight: 6, only: onCards, tries: []try{soon}, disputed: -time.Hour},
	{name: "request lost, and disputed before it is sent again", weight: 6, only: onCards, tries: []try{soon, later}, befalls: []mishap{requestLost}, disputed: 2 * time.Minute},
	{name: "answer lost, and disputed before it is asked again", weight: 6, only: onCards, tries: []try{soon, later}, befalls: []mishap{answerLost}, disputed: 2 * time.Minute},
	{name: "answer lost, and disputed days later", weight: 6, only: onCards, tries: []try{soon}, befalls: []mishap{answerLost}, disputed: 2 * day},
	{name: "slept, and sent after its lease by a clock that is behind", weight: 8, only: onMoney, tries: []try{soon}, stall: 4 * time.Minute, skew: -9 * time.Minute},
	{name: "slept for long, and sent by a clock that is far behind", weight: 5, only: onMoney, tries: []try{soon}, stall: 50 * time.Minute, skew: -55 * time.Minute},
	{name: "slept, another one went on, and it sent too", weight: 5, only: onCards, tries: []try{soon, later}, stall: 4 * time.Minute, skew: -9 * time.Minute},
	{name: "slept, and did not send", weight: 5, only: onMoney, tries: []try{soon}, stall: 4 * time.Minute, skew: 2 * time.Minute},
	{name: "never dares to send by a clock that is ahead", weight: 4, tries: []try{soon, later}, skew: 5 * time.Minute},
	twin, triple,
}

// pack is a table of fates to deal from.
type pack struct {
	fates   []fate
	percent int  // of their weights
	rest    fate // of all others
}

// deal gives so many intents a fate each, by weight: whole shares exactly, broken ones by
// chance.
func (p pack) deal(rng *rand.Rand, operations int) []fate {
	deck := make([]fate, 0, operations)
	for _, f := range p.fates {
		share := operations * f.weight * p.percent / 100
		count := share / 1000
		if rng.IntN(1000) < share%1000 {
			count++
		}
		for range count {
			deck = append(deck, f)
		}
	}
	for len(deck) < operations {
		deck = append(deck, p.rest)
	}
	rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck[:operations]
}
