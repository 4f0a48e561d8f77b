package guard

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Ledger is what the guard asks: a [ledger.Ledger], or a [ledger.Tx] within a transaction.
type Ledger interface {
	OpenOperation(context.Context, ledger.OpenRequest) (ledger.OpenAnswer, error)
	Claim(context.Context, ledger.ClaimRequest) (ledger.ClaimAnswer, error)
	Finish(context.Context, ledger.FinishRequest) (ledger.FinishAnswer, error)
}

var (
	_ Ledger = (*ledger.Ledger)(nil)
	_ Ledger = ledger.Tx{}
)

// Guard sends what was recorded. It may be used by many goroutines at once.
type Guard struct {
	Ledger Ledger
	// Holder names this process in the journal, such as host and process id. Required.
	Holder string
	// Lease is how long one attempt may take, rounded up to seconds; 0, or more than the
	// policy allows: as long as that.
	Lease time.Duration
	Log   *slog.Logger // nil: nothing is logged

	pause func(context.Context, time.Duration) error // nil: real time; for tests
}

// Call is one intent and how it is sent.
type Call struct {
	// Intent is recorded first. With Key, or Case and Step, a repeat of the call is the
	// same operation; without them every call is a new one.
	Intent ledger.OpenRequest
	Send   Send
	// Allow is the caller's own limit, asked before the first sending with the sums that
	// are already done and open for the same target. Its error closes the operation
	// unsent and is told as the answer's reason. Openings at the same moment see each
	// other as open, so a limit may refuse both, and never lets both pass.
	Allow func(ledger.Already) error
	// ID names the call for the policy's per_call limit; empty: every Do is a call.
	ID string
}

// Send sends one attempt and reports what came of it. It must not send more than once,
// must use the attempt's key and request, and must stop when ctx ends.
type Send func(ctx context.Context, a Attempt) recon.AttemptReport

// Attempt is what may be sent now.
type Attempt struct {
	Operation recon.OperationID
	Key       string
	// Request is what was recorded at the opening. It, not what the caller holds now, is
	// what the provider must get: another request under the same key is another order.
	Request json.RawMessage
	Marker  ledger.Marker // for the provider's metadata; the effect is found again by it
	Number  int           // from 1
	// InDoubt says that an earlier attempt may have had its effect. A definite answer
	// to this one may then say nothing about that one.
	InDoubt bool
}

// Do records the intent, sends it if that is allowed now, and says how it stands. The
// answer holds also beside an error: its verdict is then what can be said for sure,
// which is at most that the outcome is not known.
func (g *Guard) Do(ctx context.Context, c Call) (Answer, error) {
	if c.Send == nil {
		return Answer{}, errors.New("guard: the call has no Send")
	}
	opened, err := g.Ledger.OpenOperation(ctx, c.Intent)
	if err != nil {
		return failedOpening(err), err
	}
	a := opening(opened)
	switch opened.Verdict {
	case "new", "existing":
	default: // another operation stands for the intent, or none: it is not ours to send
		return a, nil
	}
	if c.ID == "" {
		c.ID = uuid.NewString()
	}
	return g.attempts(ctx, c, a)
}

// attempts claims and sends until the ledger or the caller's context says that it is
// enough.
func (g *Guard) attempts(ctx context.Context, c Call, a Answer) (Answer, error) {
	for {
		run, err := g.claim(ctx, ledger.ClaimRequest{OperationID: a.Operation, Call: c.ID})
		if err != nil {
			// The claim may have been granted and its answer lost. Nothing is sent on a
			// lease that we do not have; it ends by itself. After an attempt of ours its
			// verdict still holds.
			if a.Attempts == 0 {
				a = a.uncertain()
			}
			return a, err
		}
		if !run.claim.Claimed {
			return a.declined(run.claim), nil
		}
		if c.Allow != nil && !run.claim.InDoubt {
			if limit := c.Allow(a.Already); limit != nil {
				return g.forbid(ctx, run, a, limit)
			}
		}
		a.Attempts++
		report := g.send(ctx, run, c.Send)
		finish, err := g.finish(ctx, run, report)
		if err != nil {
			return a.uncertain(), err
		}
		a = a.finished(finish, report)
		again := !finish.Final && a.RetryAfter > 0 && report.Class != recon.ClassAccepted
		if !again || !g.wait(ctx, a.RetryAfter) {
			return a, nil
		}
	}
}

// forbid closes an operation that the caller's own limit keeps from being sent.
func (g *Guard) forbid(ctx context.Context, run run, a Answer, limit error) (Answer, error) {
	finish, err := g.finish(ctx, run, recon.AttemptReport{Class: recon.ClassRefused, ErrorCode: "caller_limit"})
	if err != nil {
		return a.uncertain(), err
	}
	a.State = finish.State
	return a.refused(limit.Error()), nil
}

// wait waits for the next attempt, unless the caller's context would be over by then.
func (g *Guard) wait(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) <= d {
		return false
	}
	if g.pause != nil {
		return g.pause(ctx, d) == nil
	}
	return pauseFor(ctx, d)
}

func (g *Guard) log() *slog.Logger {
	if g.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return g.Log
}
