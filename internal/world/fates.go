package world

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// crash is where the agent's process dies within one attempt.
type crash int

const (
	survives      crash = iota
	diesUnsent          // after the claim, before the call
	diesUnwritten       // after the call, before its answer is recorded
)

// step is one thing that the agent does, so long after it opened the operation.
type step struct {
	after time.Duration
	crash crash
	// reopen replays the whole tool call first, as a framework does that resumes from
	// a checkpoint: the same case and step, so the ledger must answer "existing".
	reopen bool
}

// fate is what goes wrong with an intent, and what the truth demands in the end.
type fate struct {
	name   string // as the story tells it
	weight int    // of 100; the rest of the weights is the plain fate's
	action string // empty: refund.create
	steps  []step
	// faults befall the intent's requests, which are known by their key.
	faults []stripetest.Fault
	life   stripetest.Life // nil: succeeds at once
	// times multiplies the amount that is sent against the one that was recorded: the
	// agent's own bug.
	times int64
	// over sends more than the charge has left, so that the provider refuses.
	over bool
	// latest is how long before the end the intent must be opened, so that its truth
	// comes out within the simulation.
	latest time.Duration

	final    recon.State         // that the ledger must reach
	findings []recon.FindingKind // that the truth demands, ended ones included
	unknown  bool                // the sender ever had no definite answer
}

// The actions of the shop. Goodwill refunds may be released for another try once a
// complete look shows that nothing happened; the others go to a person.
const (
	refundCreate   = "refund.create"
	refundGoodwill = "refund.goodwill"
)

var (
	soon  = step{after: 2 * time.Second}
	later = step{after: 3 * time.Minute}
)

// lost are the findings of an operation whose effect never came to be and that nobody
// sends again: in question for a quarter of an hour, then shown to be missing.
var lost = []recon.FindingKind{recon.FindUnresolved, recon.FindMissing}

// plain is the fate of an intent with which nothing goes wrong.
var plain = fate{name: "answered at once", steps: []step{soon}, final: recon.Succeeded}

// fates lists everything else, roughly from the harmless to the dangerous. Order and
// weights are part of what a seed means.
var fates = []fate{
	{
		name: "answer lost after the refund was made", weight: 7, steps: []step{soon},
		faults: []stripetest.Fault{{Kind: stripetest.Closed, Executed: true}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "answer lost, and the agent asks again under the same key", weight: 3, steps: []step{soon, later},
		faults: []stripetest.Fault{{Kind: stripetest.Closed, Executed: true}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "answer lost, and the framework replays the tool call", weight: 3,
		steps:  []step{soon, {after: 70 * time.Second, reopen: true}},
		faults: []stripetest.Fault{{Kind: stripetest.Closed, Executed: true}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "request lost on its way, and sent again under the same key", weight: 3, steps: []step{soon, later},
		faults: []stripetest.Fault{{Kind: stripetest.Closed}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "request lost on its way, and nobody sends it again", weight: 2, steps: []step{soon},
		faults: []stripetest.Fault{{Kind: stripetest.Closed}}, latest: 8 * time.Hour,
		final: recon.ManualReview, findings: lost, unknown: true,
	},
	{
		name: "request lost, released after complete looks found nothing, then sent again", weight: 2, action: refundGoodwill,
		steps:  []step{soon, {after: 62 * time.Minute}, {after: 66 * time.Minute}},
		faults: []stripetest.Fault{{Kind: stripetest.Closed}}, latest: 8 * time.Hour,
		final: recon.Succeeded, findings: []recon.FindingKind{recon.FindUnresolved}, unknown: true,
	},
	{
		name: "stored 500, and the refund was made all the same", weight: 2, steps: []step{soon, later},
		faults: []stripetest.Fault{{Kind: stripetest.ServerError, Executed: true}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "stored 500, and nothing was made", weight: 1, steps: []step{soon, later},
		faults: []stripetest.Fault{{Kind: stripetest.ServerError}}, latest: 8 * time.Hour,
		final: recon.ManualReview, findings: lost, unknown: true,
	},
	{
		name: "409, the first request still at work", weight: 2,
		steps:  []step{soon, {after: 65 * time.Second}},
		faults: []stripetest.Fault{{Kind: stripetest.Closed, Executed: true, Delay: 100 * time.Second}},
		final:  recon.Succeeded, unknown: true,
	},
	{
		name: "agent died between the call and the record", weight: 3,
		steps: []step{{after: 2 * time.Second, crash: diesUnwritten}},
		final: recon.Succeeded, unknown: true,
	},
	{
		name: "agent died before the call", weight: 1,
		steps: []step{{after: 2 * time.Second, crash: diesUnsent}}, latest: 8 * time.Hour,
		final: recon.ManualReview, findings: lost, unknown: true,
	},
	{
		name: "recorded, and no call was ever made", weight: 1, latest: 8 * time.Hour,
		final: recon.Pending, findings: []recon.FindingKind{recon.FindNeverSent},
	},
	{
		name: "too many requests, then sent", weight: 2, steps: []step{soon, later},
		faults: []stripetest.Fault{{Kind: stripetest.RateLimited, RetryAfter: 7 * time.Second}},
		final:  recon.Succeeded,
	},
	{
		name: "refused: more than the charge has left", weight: 2, steps: []step{soon}, over: true,
		final: recon.Failed,
	},
	{
		name: "pending at the provider for hours, then done", weight: 2, steps: []step{soon},
		life: stripetest.PendingThen(5*time.Hour, "succeeded"), latest: 10 * time.Hour,
		final: recon.Succeeded, unknown: true,
	},
	{
		name: "pending at the provider, then failed", weight: 1, steps: []step{soon},
		life: stripetest.PendingThen(4*time.Hour, "failed"), latest: 10 * time.Hour,
		final: recon.Failed, unknown: true,
	},
	{
		name: "the agent sent another amount than it recorded", weight: 1, steps: []step{soon}, times: 10,
		faults: []stripetest.Fault{{Kind: stripetest.Closed, Executed: true}},
		final:  recon.ManualReview, findings: []recon.FindingKind{recon.FindMismatch}, unknown: true,
	},
	{
		name: "the agent woke after the key had expired", weight: 1, action: refundGoodwill,
		steps:  []step{soon, {after: 26 * time.Hour}},
		faults: []stripetest.Fault{{Kind: stripetest.Closed}}, latest: 28 * time.Hour,
		final: recon.ManualReview, findings: lost, unknown: true,
	},
}

// outage is the fate of what is sent while the provider is down: its gateway answers
// with a page of its own, nothing is executed, and the agent repeats under the same
// key when the provider is back.
var outage = fate{
	name:  "sent while the provider was down",
	final: recon.Succeeded, findings: []recon.FindingKind{recon.FindUnresolved}, unknown: true,
}
