package guard

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Verdict is what a caller may tell its own caller.
type Verdict string

const (
	// Succeeded: it is done, once.
	Succeeded Verdict = "succeeded"
	// FailedSafeToRetry: it certainly did not happen. Not final, the same call may be
	// made again later; final, the operation is closed and a new decision opens a new one.
	FailedSafeToRetry Verdict = "failed_safe_to_retry"
	// UnknownReconciliationRequired: it may have happened. It is being checked.
	UnknownReconciliationRequired Verdict = "unknown_reconciliation_required"
	// RejectedByPolicy: it was refused before anything was sent for this call.
	RejectedByPolicy Verdict = "rejected_by_policy"
)

// Answer is how an operation stands after a call.
type Answer struct {
	Operation recon.OperationID // empty when none was recorded
	Key       string
	State     recon.State
	Verdict   Verdict
	Final     bool
	// Text says the verdict in words for whoever asked, a model or a person.
	Text string
	// Reason is why nothing, or nothing more, was sent; for the log.
	Reason string
	// Code is the error code of this call's last attempt.
	Code string
	// Result is what Send reported of a success; for a repeat, what of it was stored.
	Result json.RawMessage
	// EffectID is what this call made at the provider; a repeat finds it in Result.
	EffectID string
	// RetryAfter is when the same call may be made again; 0: not said.
	RetryAfter time.Duration
	// Attempts counts what this call sent.
	Attempts int
	// Opening is new, existing, open_elsewhere, conflict or rejected.
	Opening string
	// Already sums other operations for the same action, target and currency.
	Already ledger.Already
}

// opening is the answer before anything was claimed.
func opening(o ledger.OpenAnswer) Answer {
	a := Answer{
		Operation: o.OperationID, Key: o.Key, State: o.State, Opening: o.Verdict, Already: o.Already,
		Reason: o.Reason, Result: o.Result,
	}
	switch o.Verdict {
	case "new", "existing", "open_elsewhere":
		s := ledger.StandingOf(o.State)
		return a.stands(Verdict(s.Verdict), s.Final, s.Note)
	}
	return a.refused(o.Reason)
}

// failedOpening is the answer when the ledger did not take the intent.
func failedOpening(err error) Answer {
	var usage *ledger.UsageError
	if errors.As(err, &usage) {
		return Answer{}.refused(usage.Text)
	}
	// An earlier call may have recorded and sent the same.
	return Answer{}.uncertain()
}

func (a Answer) declined(c ledger.ClaimAnswer) Answer {
	a.State, a.Reason = c.State, c.Reason
	if c.Result != nil {
		a.Result = c.Result
	}
	a.RetryAfter = time.Duration(c.RetryAfterSeconds) * time.Second
	if Verdict(c.Verdict) == RejectedByPolicy {
		return a.refused(c.Reason)
	}
	return a.stands(Verdict(c.Verdict), c.Final, c.Note)
}

func (a Answer) finished(f ledger.FinishAnswer, r recon.AttemptReport) Answer {
	a.State = f.State
	a.RetryAfter = time.Duration(f.RetryAfterSeconds) * time.Second
	a.Code = r.ErrorCode
	if r.Class == recon.ClassSucceeded || r.Class == recon.ClassAccepted {
		a.EffectID = r.EffectID
	}
	if f.State == recon.Succeeded {
		a.Result = r.Result
	}
	return a.stands(Verdict(f.Verdict), f.Final, f.Note)
}

func (a Answer) refused(reason string) Answer {
	a.Reason, a.RetryAfter = reason, 0
	return a.stands(RejectedByPolicy, true, "")
}

func (a Answer) uncertain() Answer {
	return a.stands(UnknownReconciliationRequired, false, "")
}

func (a Answer) stands(v Verdict, final bool, note string) Answer {
	a.Verdict, a.Final, a.Text = v, final, note
	if note == "" {
		a.Text = Words(v, final)
	}
	if v == RejectedByPolicy {
		a.Text += ": " + a.Reason + "."
	}
	return a
}

// Words say a verdict for whoever asked, a model or a person.
func Words(v Verdict, final bool) string {
	switch {
	case v == Succeeded:
		return "It is done. Do not do it again."
	case v == FailedSafeToRetry && final:
		return "It did not happen and will not. Doing it after all is a new decision."
	case v == FailedSafeToRetry:
		return "It did not happen. The same call may be made again later."
	case v == RejectedByPolicy:
		return "It was refused before anything was sent"
	}
	return "The outcome is being checked. Report neither success nor failure."
}
