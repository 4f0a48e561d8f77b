// Package httpapi observes effects at any JSON API, by configuration alone: which
// addresses answer which question, where an object holds what, what its words mean, how
// lists go on, and what a "not found" looks like and is worth.
//
// It only reads. Its transport refuses every method but GET, whatever the configuration
// says; an API that can only be searched by POST is not asked. The one POST there is goes to
// the token endpoint of OAuth2 client credentials, through a client of its own.
//
// # How a batch is asked
//
// A question can be answered alone, by the effect's id, our reference, the idempotency key
// or the list of a parent, or together with others by one list of a window. [Source.Ask]
// reads the window's pages as long as they cost no more than the single requests that they
// save; then it asks singly, first where silence counts; then it lists for what nothing else
// has answered. What was not sent is not asked for.
//
// # What is never absent
//
// Only a reply that the configuration declares to mean "not there", and a list that was
// read to its end, are silence. Every other status, redirects, pages of HTML, empty or cut
// bodies, objects without the fields that are configured, words that have no meaning,
// filters that are not obeyed, lists out of order, lists that break off, become shorter,
// promise more and do not say where, or end before the number that they tell: all of these
// are blind.
//
// # Personal data
//
// Only the configured fields are read; [sources.Raw] is what they hold, written back. What
// is personal is compared as a hash: see [HashTarget]. No message quotes a reply.
package httpapi
