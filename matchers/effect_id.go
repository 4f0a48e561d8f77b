package matchers

import "github.com/seed-1c4f4dc2/reconciler/recon"

// byEffectID finds the operation that knows the effect's id. Ids are unique only
// within an account, so an operation of another account is not meant.
var byEffectID = matcher{
	basis:       recon.OnEffectID,
	certainty:   recon.Proof,
	ofOperation: func(o *recon.Operation) string { return o.EffectID },
	ofEffect:    func(e *recon.Effect) string { return e.ID },
	names: func(o *recon.Operation, e *recon.Effect) bool {
		return o.Account == "" || o.Account == e.Account
	},
}
