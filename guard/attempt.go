package guard

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// Telling the outcome is tried for finishWithin: the caller may have gone, the
	// database may be restarting. After that the lease ends by itself.
	finishWithin = 30 * time.Second
	firstRetry   = 50 * time.Millisecond
	maxRetry     = 2 * time.Second
	// reserve is kept of a lease, at most a tenth, so that a call that runs into its
	// deadline can still be told under the live lease.
	reserve = time.Second
)

var classes = []recon.AttemptClass{
	recon.ClassSucceeded, recon.ClassAccepted, recon.ClassRefused,
	recon.ClassNotSent, recon.ClassStoredError, recon.ClassIndeterminate,
}

// run is one granted claim and until when it may be used.
type run struct {
	claim    ledger.ClaimAnswer
	deadline time.Time
}

// claim asks for the right to send. The deadline is counted from before the question, by
// the local monotonic clock: how local and database time relate does not matter.
func (g *Guard) claim(ctx context.Context, r ledger.ClaimRequest) (run, error) {
	r.Holder = g.Holder
	r.LeaseSeconds = int64(math.Ceil(g.Lease.Seconds()))
	asked := time.Now()
	claim, err := g.Ledger.Claim(ctx, r)
	if err != nil {
		return run{}, err
	}
	within := time.Duration(claim.SendWithinSeconds * float64(time.Second))
	return run{claim: claim, deadline: asked.Add(within - min(reserve, within/10))}, nil
}

// send calls the caller's function under the lease, or not at all.
func (g *Guard) send(ctx context.Context, r run, send Send) recon.AttemptReport {
	ctx, cancel := context.WithDeadline(ctx, r.deadline)
	defer cancel()
	if ctx.Err() != nil {
		// The process was stopped meanwhile, or the database answered late.
		return recon.AttemptReport{Class: recon.ClassNotSent, ErrorCode: "too_late"}
	}
	report := send(ctx, Attempt{
		Operation: r.claim.OperationID, Key: r.claim.Key, Request: r.claim.Request, Marker: r.claim.Marker,
		Number: r.claim.Attempt, InDoubt: r.claim.InDoubt,
	})
	if !slices.Contains(classes, report.Class) {
		report.Class = recon.ClassIndeterminate
	}
	return report
}

// finish tells the ledger what came of an attempt, although the caller may have gone
// and the database may be away for a moment.
func (g *Guard) finish(ctx context.Context, r run, report recon.AttemptReport) (ledger.FinishAnswer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	request := ledger.FinishRequest{
		OperationID: r.claim.OperationID, Token: r.claim.Token, Class: report.Class, EffectID: report.EffectID,
		Result: report.Result, ErrorCode: report.ErrorCode, RequestID: report.RequestID,
	}
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		answer, err := g.Ledger.Finish(ctx, request)
		switch {
		case err == nil:
			if !answer.Applied {
				g.log().Warn("an attempt ended after its lease; what came of it is kept as evidence",
					"operation", r.claim.OperationID, "class", report.Class)
			}
			return answer, nil
		case unfit(err):
			next, ok := plainer(request)
			if !ok {
				return answer, err
			}
			g.log().Warn("the ledger refuses part of a report; telling less", "operation", r.claim.OperationID, "error", err.Error())
			request = next
		case !ledger.Passing(err):
			return answer, err
		default:
			g.log().Warn("the outcome of an attempt cannot be told yet", "operation", r.claim.OperationID, "error", err.Error())
			if !pauseFor(ctx, wait) {
				return answer, err
			}
		}
	}
}

// plainer drops what the ledger may refuse, the least important first: that something
// was sent must be told whatever the sender's texts are like.
func plainer(r ledger.FinishRequest) (ledger.FinishRequest, bool) {
	bare := ledger.FinishRequest{OperationID: r.OperationID, Token: r.Token, Class: r.Class, EffectID: r.EffectID}
	switch {
	case r.Result != nil || r.ErrorCode != "" || r.RequestID != "":
		return bare, true
	case r.EffectID != "":
		bare.EffectID, bare.Class = "", recon.ClassIndeterminate
		return bare, true
	}
	return bare, false
}

// unfit reports that the ledger refuses what it was given.
func unfit(err error) bool {
	var usage *ledger.UsageError
	var fault *ledger.Fault
	return errors.As(err, &usage) || errors.As(err, &fault) && fault.Kind == ledger.FaultData
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
