// Package guard puts the ledger around one call that cannot be taken back: whatever
// crashes, repeats or resumes, one intent has one effect.
//
//	answer, err := g.Do(ctx, guard.Call{
//		Intent: ledger.OpenRequest{Action: "refund.create", Target: "order:4417", Case: "case-9", Step: &step, …},
//		Send:   func(ctx context.Context, a guard.Attempt) recon.AttemptReport { … },
//	})
//
// [Guard.Do] records the intent, takes a lease, calls Send once under it and tells the
// ledger what came of that. Where policy allows, it sends again under the same key.
// [Enqueue] records an intent in a transaction of the caller's, and a [Worker] sends it
// later. [OwnWrite] is for a change in the same database, which needs no sending at all.
//
// The package holds no rule. Whether something may be sent, repeated, or counts as
// failed is decided by the ledger's three SQL functions, which serve every language. What
// is done here is what a caller would get wrong: nothing is sent without a live lease,
// the deadline of a call is a duration and so does not depend on the local clock, the
// outcome is told also when the caller has gone, and what cannot be told is unknown.
//
// It promises: Send is called only while the lease lasts, at most once per claim, with the
// request that was stored when the intent was opened. It refuses to guess: a Send that
// reports no class, or one that is not known, was indeterminate.
package guard
