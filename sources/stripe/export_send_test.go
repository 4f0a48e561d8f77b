package stripe

import (
	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ReportOf classifies an answer without a request.
func ReportOf(status int, body []byte, inDoubt bool) recon.AttemptReport {
	return Sending{InDoubt: inDoubt}.report(attempt.Reply{Seen: true, Status: status, Body: body})
}
