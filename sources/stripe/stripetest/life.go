package stripetest

import "time"

// Life is what becomes of a refund: its first turn is its state when made, and each
// later one comes so long after its creation, on the simulated clock.
type Life []Turn

// Turn is one change of a refund's state.
type Turn struct {
	After  time.Duration // since creation
	Status string
	// Reason is the pending_reason of a pending refund and the failure_reason of a
	// failed or canceled one.
	Reason string
}

// Succeeds is the life of a refund that succeeds at once and stays so.
func Succeeds() Life { return Life{{Status: "succeeded"}} }

// PendingThen is the life of a refund that is pending, and after d takes a status:
// succeeded, failed or canceled.
func PendingThen(d time.Duration, status string) Life {
	return Life{{Status: "pending", Reason: "processing"}, {After: d, Status: status}}
}

// FailsLate is the life of a refund that succeeds at once and fails d later, when
// the bank gives the money back.
func FailsLate(d time.Duration, reason string) Life {
	return Life{{Status: "succeeded"}, {After: d, Status: "failed", Reason: reason}}
}

// NeedsAction is the life of a refund that waits for the customer; the API may cancel it.
func NeedsAction() Life { return Life{{Status: "requires_action"}} }
