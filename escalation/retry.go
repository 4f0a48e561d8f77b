package escalation

import (
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	retryBase = 5 * time.Second
	retryMax  = 5 * time.Minute
	// retryAfterMax bounds what a destination may ask for, so that one wrong header
	// does not silence it for a day.
	retryAfterMax = 10 * time.Minute
	// mendedEvery is how often a destination that refuses is tried again: soon enough
	// after somebody mends it at night, and too seldom to have the app switched off.
	mendedEvery = 10 * time.Minute
	// lostWait lets a request whose answer was lost come to its end before the channel
	// is searched for its message.
	lostWait = 15 * time.Second
	// looksBeforeRepeat is how many look-backs in a row may fail for the moment. Then the message is sent as a repeat: rather twice than never.
	looksBeforeRepeat = 5
)

// outcome is what follows from one try.
type outcome struct {
	delivery recon.Delivery
	result   Result
	hold     time.Time // the destination gets nothing before; zero: no wait
}

// heldBack is the outcome of a notice that comes due while its destination is left
// alone. Nothing is sent for it, so it adds no doubt.
func (o outcome) heldBack(n recon.Notice) outcome {
	o.delivery.Doubt = n.Doubt
	o.delivery.Next = o.hold
	return o
}

// judgeFailure says what becomes of a notice whose request failed, and until when
// its destination is left alone. Failures counts those in a row before this one.
func judgeFailure(n recon.Notice, err error, failures int, now time.Time) outcome {
	kind, code, after := Lost, "", time.Duration(0)
	if e, ok := errors.AsType[*Error](err); ok {
		kind, code, after = e.Kind, e.Code, e.RetryAfter
	}
	o := outcome{result: Postponed, delivery: recon.Delivery{
		Reason: string(kind),
		// A doubt ends only with a message that was found or posted.
		Doubt: n.Doubt || kind == Lost,
	}}
	if code != "" {
		o.delivery.Reason += ": " + code
	}
	var wait time.Duration
	switch kind {
	case RateLimited:
		wait = min(max(after, time.Second), retryAfterMax)
	case Refused, Gone:
		wait, o.result, o.delivery.Undelivered = mendedEvery, Undelivered, true
	case Rejected:
		o.result, o.delivery.Undelivered = Undelivered, true
		o.delivery.Next = now.Add(mendedEvery)
		return o // the fault is this message's; the next one may pass
	default:
		wait = min(retryBase<<min(failures, 10), retryMax)
		if kind == Lost {
			wait = max(wait, lostWait)
		}
	}
	o.hold = now.Add(wait)
	o.delivery.Next = o.hold
	return o
}

// worthLookingAgain reports whether a look-back that failed should be tried again
// before anything is posted: it failed for the moment, and not too often in a row.
func worthLookingAgain(err error, before int) bool {
	if errors.Is(err, Refused) {
		return false // it may never look: a scope is missing
	}
	return before+1 < looksBeforeRepeat
}
