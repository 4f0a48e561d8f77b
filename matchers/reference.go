package matchers

import (
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// byReference finds the operation whose id the provider holds in the effect's
// metadata. Outer white space is trimmed, because people and forms add it; all else
// is exact: op_1 and OP_1 may be two operations.
var byReference = matcher{
	basis:       recon.OnReference,
	certainty:   recon.Proof,
	ofOperation: func(o *recon.Operation) string { return string(o.ID) },
	ofEffect:    func(e *recon.Effect) string { return strings.TrimSpace(e.Reference) },
}
