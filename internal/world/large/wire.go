package large

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
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
	{Kind: stripetest.LockTimeout}, {Kind: stripetest.BadRequest, Param: "starting_after"},
}

// likeAbsent is how many of them look as if nothing were there.
const likeAbsent = 6

// spoilReads has questions to the card provider end badly from now on, for so long.
func (w *World) spoilReads(f stripetest.Fault, long time.Duration) {
	w.tally.fault("card provider does not answer: " + faultName(f))
	f.Method, f.From, f.Times = "GET", w.cardsNow(), stripetest.Always
	f.Until = f.From.Add(long)
	w.at.cards.Script(f)
}

// hangUp has the sender of a held request go as soon as the provider has it.
func hangUp(f stripetest.Fault, gone context.CancelFunc) stripetest.Fault {
	if f.Hold != nil {
		f.Match = func(stripetest.Call) bool {
			gone()
			return true
		}
	}
	return f
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
