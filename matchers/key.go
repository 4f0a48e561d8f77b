package matchers

import "github.com/seed-1c4f4dc2/reconciler/recon"

// byKey finds the operation whose idempotency key the effect was made with. Same key
// with another amount is a pair with a difference, so a mismatch, and never adopted.
var byKey = matcher{
	basis:       recon.OnKey,
	certainty:   recon.Proof,
	ofOperation: func(o *recon.Operation) string { return o.Key },
	ofEffect:    func(e *recon.Effect) string { return e.Key },
}
