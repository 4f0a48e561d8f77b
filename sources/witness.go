package sources

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Witness is a source that shows business objects of our own: is the order marked refunded,
// and for how much? What they say never closes anything.
type Witness interface {
	// Witnesses are the names by which actions name the objects.
	Witnesses() []string
	// Testify says what the objects of one witness say of the operations that questions are
	// about. Questions that are about none of its objects are left out. A fault is a blind
	// look; an error means that the context ended.
	Testify(ctx context.Context, name string, batch []Question, now func() time.Time) ([]recon.Testimony, error)
	// ProbeWitness asks whether the objects of one witness can be read. It returns nil or an
	// *Error, or says that there is no such witness.
	ProbeWitness(ctx context.Context, name string) error
}
