package large

import (
	"net/http"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// sending lists what may befall a request to the card provider, by the mishap that it is for
// whoever sent it.
var sending = map[mishap][]stripetest.Fault{
	answerLost: {
		{Kind: stripetest.Closed, Executed: true}, {Kind: stripetest.ProxyPage, Executed: true}, {Kind: stripetest.NotJSON, Executed: true},
		{Kind: stripetest.EmptyBody, Executed: true}, {Kind: stripetest.EmptyObject, Executed: true}, {Kind: stripetest.Truncated},
		{Kind: stripetest.NotJSON, Executed: true, Status: 404}, {Kind: stripetest.ProxyPage, Executed: true, Status: 403},
	},
	requestLost: {
		{Kind: stripetest.Closed}, {Kind: stripetest.ProxyPage, Status: 504}, {Kind: stripetest.NotJSON}, {Kind: stripetest.EmptyBody}, {Kind: stripetest.EmptyObject},
		{Kind: stripetest.KeyInUse}, {Kind: stripetest.ProxyPage, Status: 404},
	},
	storedDone: {{Kind: stripetest.ServerError, Executed: true}},
	storedNot:  {{Kind: stripetest.ServerError}},
	turnedAway: {
		{Kind: stripetest.RateLimited, RetryAfter: 7 * time.Second}, {Kind: stripetest.LockTimeout}, {Kind: stripetest.Unauthorized}, {Kind: stripetest.Forbidden},
	},
	landsLate: {
		{Kind: stripetest.Closed, Executed: true, Delay: 100 * time.Second}, {Kind: stripetest.ProxyPage, Executed: true, Status: 504, Delay: 100 * time.Second},
	},
	storedLate: {{Kind: stripetest.ServerError, Executed: true, Delay: 100 * time.Second}},
	refused:    {{Kind: stripetest.BadRequest, Param: "amount"}},
	gaveUp:     {{Kind: stripetest.Slow, Hold: make(chan struct{})}},
}

// fault is a mishap as the card provider suffers it, one of its kinds by n.
func (m mishap) fault(n int) (stripetest.Fault, bool) {
	kinds := sending[m]
	if len(kinds) == 0 {
		return stripetest.Fault{}, false
	}
	return kinds[n%len(kinds)], true
}

// reading lists how the card provider does not answer a question: none of these says that
// something is not there, though the first of them look like it.
var reading = []stripetest.Fault{
	{Kind: stripetest.ProxyPage, Status: 404}, {Kind: stripetest.NotJSON, Status: 404}, {Kind: stripetest.EmptyBody, Status: 404},
	{Kind: stripetest.EmptyObject}, {Kind: stripetest.ProxyPage, Status: 200}, {Kind: stripetest.EmptyBody},
	{Kind: stripetest.ProxyPage, Status: 503}, {Kind: stripetest.Unauthorized}, {Kind: stripetest.Forbidden}, {Kind: stripetest.Closed},
	{Kind: stripetest.ServerError}, {Kind: stripetest.NotJSON}, {Kind: stripetest.Truncated}, {Kind: stripetest.RateLimited, RetryAfter: 3 * time.Second},
	{Kind: stripetest.LockTimeout}, {Kind: stripetest.BadRequest, Param: "starting_after"}, {Kind: stripetest.Slow, Hold: make(chan struct{})},
}

// likeAbsent is how many of them look as if nothing were there.
const likeAbsent = 6

// spoilReads has questions to the card provider end badly from now on, for so long.
func (w *World) spoilReads(f stripetest.Fault, long time.Duration) {
	w.tally.fault("card provider does not answer: " + faultName(f))
	f.Method, f.From, f.Times = "GET", w.cardsNow(), stripetest.Always
	f.Until = f.From.Add(long)
	if f.Hold != nil {
		w.at.cards.Script(w.hangs(f))
		f.Kind, f.Hold, f.Status = stripetest.ProxyPage, nil, http.StatusGatewayTimeout // for who is not held
	}
	w.at.cards.Script(f)
}

// untilDone waits, by the real clock, for what the provider does after its caller hung up.
func (w *World) untilDone(op recon.OperationID) {
	for deadline := time.Now().Add(5 * time.Second); len(w.book.by(op)) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// faultName says in a few words what a fault is.
func faultName(f stripetest.Fault) string {
	names := map[stripetest.FaultKind]string{
		stripetest.Slow: "held", stripetest.Closed: "connection closed", stripetest.ServerError: "500", stripetest.ProxyPage: "page of a proxy",
		stripetest.NotJSON: "plain text", stripetest.EmptyBody: "nothing", stripetest.EmptyObject: "empty object", stripetest.Truncated: "cut in the middle",
		stripetest.RateLimited: "429", stripetest.LockTimeout: "lock timeout", stripetest.Unauthorized: "401", stripetest.Forbidden: "403",
		stripetest.KeyInUse: "key in use", stripetest.BadRequest: "400",
	}
	return names[f.Kind]
}

// someReadsFail has each question to the card provider end badly with a small chance.
func (w *World) someReadsFail() {
	for _, f := range reading {
		f.Method, f.Chance, f.Times = "GET", w.plan.nature.badReads/float64(len(reading)), stripetest.Always
		if f.Hold != nil {
			f = w.hangs(f)
		}
		w.at.cards.Script(f)
	}
}

// accountAway has one account of the card provider not answer. Where a source sees another
// one too, that one goes on.
func (w *World) accountAway(t trouble) {
	all := []string{account, toldAccount}
	if w.plan.nature.shops {
		all = append(all, shop)
	}
	f := reading[t.size/len(all)%len(reading)]
	f.Account = all[t.size%len(all)]
	w.tally.fault("account alone does not answer: " + f.Account)
	switch now := w.clock.Now(); {
	case f.Account == toldAccount: // every look there is blind anyway
	case w.plan.nature.shops:
		w.narrow = w.narrow || t.long >= 10*time.Minute
	default:
		w.outage(cards, now, now.Add(t.long))
	}
	w.spoilReads(f, t.long)
}

// breaks has a plain provider not answer the product as it should.
func (w *World) breaks(name recon.SourceName, at interface {
	Break(httpapitest.Fault, int)
	Mend()
}, t trouble) {
	f, good := t.plainFault()
	w.tally.fault(string(name) + " does not answer: " + string(f))
	now := w.clock.Now()
	w.outage(name, now, now.Add(t.long))
	at.Break(f, good)
	w.agenda.Plan(now.Add(t.long), func() error { at.Mend(); return nil })
}
