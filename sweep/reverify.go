package sweep

import (
	"context"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// Reverify makes one pass over closed operations whose rung on the re-verification
// ladder is due, through the same steps as Run: effects can turn bad after they were
// good, and a closing can have been wrong.
func (s *Sweep) Reverify(ctx context.Context, o Options) (Outcome, error) {
	return s.run(ctx, o, "reverify", ledger.ClosedOperations)
}
