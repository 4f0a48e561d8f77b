// Package stripetest is a fake Stripe over real HTTP that keeps the provider's rules:
// answers stored under idempotency keys, answers that get lost, refunds that fail
// days after they succeeded, lists that lag. Tests and the demo ask it with the real
// client; what is really true is told by [Server.Refunds] and its like, and what was
// asked by [Server.Calls].
//
//	srv, err := stripetest.Start(stripetest.Options{Now: clock.Now, Seed: 1,
//		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_…", ReadKey: "rk_live_…"}}})
//	defer srv.Close()
//	srv.AddCharge(stripetest.Charge{ID: "ch_1", Account: "acct_1", Mode: "live", Amount: 5000, Currency: "eur"})
//	srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true})
//
// It listens on 127.0.0.1 only, checks no TLS, and reads no clock but Options.Now: time
// passes at the provider when a request or a question for the truth comes, and what
// became due until then happens first, in order and as of its own time. The same seed,
// clock and requests give the same ids and answers; requests with keys of their own
// get the same ids also when they arrive in another order. Ids of requests and events
// without a key depend on that order.
//
// # Rules that are kept
//
// Accounts: each account and mode is a store of its own; an id of another one is 404
// resource_missing. Unknown key 401; a write with a restricted key (rk_) 403; a connected
// account is opened by its platform's key with Stripe-Account, any other account 403.
//
// Layers, in order: authentication; limiter and proxies (scripted faults); idempotency
// key; validation; work.
//
// Keys: per account and mode, of up to 255 characters, on POST only. Once the work began
// its status and body are stored, success or failure, 500 included, and replayed with
// Idempotent-Replayed, Original-Request and a new Request-Id. Other parameters, or
// another endpoint, are 400 idempotency_error without code. While the first runs, 409
// idempotency_key_in_use. Validation failures, 401, 403, 409 and 429 are not stored. 24 h
// after its first receipt a key is forgotten, and its next use makes a second object.
//
// Refunds: by charge or payment intent; refused when nothing is left
// (charge_already_refunded), when too much is asked (param amount, no code), when the
// charge is disputed; two equal partial ones both pass. The life of [Options.Life] runs on
// the simulated clock: pending, requires_action, succeeded, failed also after succeeded,
// canceled; with pending_reason, failure_reason, balance_transaction and
// failure_balance_transaction. The charge's amount_refunded is the running total of
// refunds that neither failed nor were canceled. Only requires_action can be canceled.
//
// Payment intents: create, confirm, capture, cancel, update of metadata and
// description; declined (402 with the intent and a failed charge), requires_action and
// processing by test payment method; manual and partial capture. Their metadata goes
// over to the charge.
//
// Transfers, payouts, customers, invoices, subscriptions, checkout sessions, credit notes,
// disputes: [Server.AddResource] seeds them, [Server.TurnResource] and
// [Server.ReverseTransfer] change them as their lives allow, with the events that tell of
// it: a payout fails also after it was paid, an invoice is paid also after it was given up,
// a dispute takes amount and fee and marks its charge. Canceled subscriptions are listed
// only with a status; a deleted customer is in no list, and its id answers deleted for ever.
//
// Lists (all of these kinds, events, balance transactions): newest first, limit 1 to 100, starting_after, ending_before, created in whole seconds, each list's own
// filters, has_more, expand to four levels. What an endpoint does not know, or cannot
// read, is 400 with param.
//
// Search (payment intents, charges, customers, invoices, subscriptions): metadata, status, currency and customer by whole
// value ignoring case, presence by null, negation, up to ten clauses by AND or OR.
//
// Events: 30 days; type with *, or up to 20 types; request with id and idempotency_key, null
// for what the provider did by itself; account for connected accounts; the object as it
// was then. refund.created, refund.updated with its old name charge.refund.updated,
// refund.failed, charge.succeeded, charge.failed, charge.captured, charge.refunded,
// payment_intent.*. delivery_success tells those that some endpoint has not taken.
//
// Webhooks: [Server.AddEndpoint] names where events go, [Server.Post] posts what is due by
// the clock, signed and over real HTTP; see [Endpoint]. An answer other than 2xx, a
// redirect too, brings the event again with growing rests: three days in live mode, three
// times in test mode. Each post has a time and signatures of its own, one for each active
// secret. A live endpoint for connected accounts gets their test events too. Versions
// before 2022-11-15 put refunds into charges and charges into payment intents; before
// 2024-10-28 there is no refund.* for the refunds of a charge; before 2017-05-25 request
// is an id.
//
// Metadata: 50 keys, 40 and 500 characters, no square brackets; an empty value removes.
//
// Visibility: [Lag] hides a new object by way of asking. A hidden object is there for
// the endpoints that write.
//
// # What is not kept
//
// There are no thin events. Charges and the further kinds are seeded, no endpoint makes
// them; nothing follows from one by itself, no invoice from a subscription. The lag hides creation only: a visible object is shown as it is
// now. The rate is not limited unless a fault says so. The balance is always zero, so no
// refund waits for funds unless its life says so; fees are zero, but for disputes. Processing intents
// stay processing. A partial capture makes a refund of what it releases only with
// [Options.ReleaseRefunds].
// Answers have one version whatever Stripe-Version asks for. Parameters that change
// nothing here (reverse_transfer, receipt_email, …) are accepted by name and not looked at.
//
// Not proven by a source, and so a choice: a key is not shared between a platform and
// its connected accounts; refusals by business rules (over-refund, unknown charge) are
// stored, since the work began; an unknown id as cursor of a list is 400; a refund that
// fails lowers amount_refunded again; a refund that fails makes both refund.updated and
// refund.failed; every refund.updated of a charge's refund comes as charge.refund.updated
// too; how long an endpoint's next try is away.
//
// # Faults
//
// [Server.Script] takes faults by method, path, account, key, page of a list, n-th
// match, window of the simulated clock, or chance. A client of net/http sends a request
// again by itself when a kept connection dies before the first byte, if it is a GET or
// bears an Idempotency-Key: a Closed fault that happens once is then not seen by its
// caller. Tests that want it seen disable keep-alives.
package stripetest
