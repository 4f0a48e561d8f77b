package ledger

import "github.com/seed-1c4f4dc2/reconciler/recon"

// Standing is what may be told about an operation by whoever holds no lease on it. It
// is the SQL function verdict_of for readers that have the state already.
type Standing struct {
	Verdict string // succeeded, failed_safe_to_retry, unknown_reconciliation_required
	Final   bool
	Note    string
}

// StandingOf tells how an operation in this state stands.
func StandingOf(s recon.State) Standing {
	switch s {
	case recon.Succeeded:
		return Standing{Verdict: "succeeded", Final: true}
	case recon.Failed:
		return Standing{Verdict: "failed_safe_to_retry", Final: true}
	case recon.Pending:
		return Standing{Verdict: "failed_safe_to_retry"}
	}
	return Standing{
		Verdict: "unknown_reconciliation_required",
		Note:    "The outcome is being checked. Report neither success nor failure.",
	}
}
