package matchers

import (
	"golang.org/x/text/unicode/norm"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// byNaturalReference finds the operation by a reference that the business and the
// provider both keep, such as supplier and invoice number. It is typed by people on
// many keyboards, so it is compared in Unicode NFC.
//
// It names nobody where two operations share it, nor an operation that is known to
// have failed: "this invoice exists already" is a common reason of a failure, and the
// effect is then somebody else's.
var byNaturalReference = matcher{
	basis:       recon.OnNaturalReference,
	certainty:   recon.StrongSign,
	ofOperation: func(o *recon.Operation) string { return norm.NFC.String(o.Reference) },
	ofEffect:    func(e *recon.Effect) string { return norm.NFC.String(e.NaturalReference) },
	names:       func(o *recon.Operation, _ *recon.Effect) bool { return o.State != recon.Failed },
	unique:      true,
}
