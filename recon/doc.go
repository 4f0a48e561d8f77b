// Package recon is the vocabulary that every other package speaks: operations,
// effects, looks, matches, decisions, findings, policies, and the legal changes
// of state. It imports the standard library only, has no interfaces and does no
// I/O, so that matching and deciding stay pure and every room can be built and
// tested by itself.
//
// A type enters recon only when a third package needs it; the test in
// internal/archtest holds the literal list, so that growth is a visible diff.
//
// Three laws are expressed by the types rather than by care:
//
//   - "not there" ([Absent]) and "could not look" ([Blind]) are different values
//     of [Outcome], from the source to the report;
//   - an identity of an effect always holds account and mode ([EffectIdentity]),
//     so that a test object never stands for a live one;
//   - a [Decision] names its rule, its reason and its evidence.
package recon
