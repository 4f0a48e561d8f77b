// Package matchers pairs operations with effects and says why each pair was made and
// how certain it is. It is pure: it asks nobody, keeps nothing and does not depend on
// the order of its input.
//
// Every effect gets at most one owner, an operation or a group. It goes to the operation that the strongest
// evidence names, in this order:
//
//	owner              the ledger linked it before, or a person adopted it   proof
//	reference          our operation id in the provider's metadata           proof
//	effect_id          the operation knows the effect's id                   proof
//	key                the idempotency key                                   proof
//	natural_reference  a reference that the provider keeps, named by one     strong
//
// What stays without owner is compared once more, for people only: a reference that
// looks like an operation's (lookalike), and an effect under the same parent with the
// same amount (candidate). Those are suggestions; they never close anything.
//
// Three conditions stand before all evidence: the system and the mode are the same
// (a test object never stands for a live one, whatever it carries), and the kind is
// the one that the operation's action makes (a charge may carry the reference of the
// payment intent that caused it).
//
// Where identities disagree, the pair is made by the stronger one and the
// disagreement becomes a difference of the pair, so that rules tell it as a mismatch
// and nothing closes on it.
//
// Operations may declare a group. An effect whose reference names the group belongs to
// all of them, with a share each, and several effects may stand for it together; the
// sums of both sides must be equal to the last minor unit (group.go).
package matchers
