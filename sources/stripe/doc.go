// Package stripe observes the objects of eleven kinds at Stripe, from refunds to disputes,
// with the real stripe-go client. It only reads: its transport refuses every method but GET,
// and a test holds the list of stripe-go functions that it can reach.
//
// # How a batch is asked
//
// The questions of a batch are grouped by account, mode and kind. A question can be
// answered by the effect's id, or by the list of what hangs under its parent (one
// call each), or by a list of everything created since (pages of 100, newest first,
// which answer every question younger than the oldest object read). [Source.Ask]
// reads pages as long as the pages to the next questions cost no more than the single
// calls that they save; questions without id and parent are always listed for. A crowd that
// asks about long ago, as after an outage, is first looked for in the pages of its own time,
// which only find. A list
// that was left early answers for the range that it did read, and says so in its
// [recon.Look.Window].
//
// Search (not every kind has one) and the feed of events (idempotency keys)
// only ever find; their silence proves nothing, and the sheet says so.
//
// [Source.Page] lists a window for its own sake, a page a call. Its cursor names the last
// object that was read, the list and the window; it holds across processes, and the list
// goes on also where that object was deleted since.
//
// # Events
//
// [Source.Verify] takes what Stripe signed with one of the source's secrets, not too long
// ago and not from the future, of any API version. [Source.Decode] shows the objects that
// an event carries whole, as effects that equal those that a look would bring; a field
// that is absent, not null, makes a hint, so that the object is read in the version that
// is known here. charge.refunded carries no refunds in new versions and hints at them. A
// key is taken only from the event of an object's creation: any later one names the key
// of its own request. [Source.Events] reads Stripe's list of events, which recovers what
// was not delivered in 30 days.
//
// # What is never absent
//
// Every fault is a look with outcome [recon.Blind]: refused connections, time-outs,
// 4xx and 5xx, redirects, bodies that are empty, cut, too large or not what Stripe
// sends, lists that break off, objects of another mode, credentials that belong to
// another account. Only a 404 with code resource_missing for an id, and a list that was
// read to its end, are silence.
//
// # Personal data
//
// What Stripe sends is read through small structs that hold only the fields we need;
// these structs are the allow-list, and [sources.Raw] is what they hold, written back.
// Error texts of Stripe are never kept: they quote what was sent ("No such customer:
// jane@example.com"). Only status, type, code and parameter name are.
package stripe
