// Package sources is the contract that every provider keeps: what it can do (its
// capability sheet), how it is asked, and how it says that it could not answer.
//
// A source only reads. It never calls a write endpoint of its provider, never
// retries by itself beyond what its contract says, and never turns "could not look"
// into "not there": what it could not find out is a look with outcome
// [recon.Blind] that names the fault.
package sources

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Source observes effects at one provider. All methods may be called by one
// goroutine at a time per holder of the source's lease.
type Source interface {
	// Name is the name that the configuration gives.
	Name() recon.SourceName
	// Sheet says what the source can do. It does not change while the process runs.
	Sheet() recon.Sheet
	// Ask answers a batch of questions in the cheapest way that the source knows:
	// single look-ups, lists by parent, or one windowed list for many. Every question
	// is covered by at least one look of the answer, absent and blind ones included, or a
	// look found the effect that bears its reference.
	// A fault of the provider is a blind look, not an error; an error means that the
	// context ended or that the source itself is broken, and then nothing was learned.
	// Looks are stamped with the times that now returns.
	Ask(ctx context.Context, batch []Question, now func() time.Time) (Answer, error)
	// Probe makes the cheapest request that shows whether the provider answers, and
	// returns nil or an *Error.
	Probe(ctx context.Context) error
}

// Question asks for the effects of one operation.
type Question struct {
	Operation recon.OperationID // also our reference at the provider
	Kind      string            // kind of effect that the action makes
	Account   string            // empty: not known; the source then asks all of its accounts
	Mode      string
	EffectID  string // when one is known
	Key       string // empty when it was not sent
	Parent    string
	Target    string
	Group     string
	Natural   string       // natural reference
	Marks     []recon.Mark // what was really sent
	Money     recon.Money
	From      time.Time // the earliest time at which the effect can exist
}

// Answer is what a batch of questions brought.
type Answer struct {
	Effects []recon.Effect // all that were seen, once each, also those nobody asked for
	Looks   []recon.Look
	Raw     []Raw // what the provider said, already reduced to the allow-list
}

// Raw is one object as the provider sent it, with what is not on the source's
// allow-list removed.
type Raw struct {
	Effect recon.EffectIdentity
	Bytes  []byte
}
