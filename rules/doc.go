// Package rules judges. [Decide] concludes of one operation what its effects and
// looks allow, and plans when to look again; the find functions tell what is wrong
// across operations; [Judge] sorts operations and effects into the classes of an
// audit. Everything is pure: it takes the time and the policy as arguments, asks
// nobody and changes nothing. What it returns is written by the ledger.
//
// One rule is one file, and has one page in docs/rules. The rules of one operation
// stand in one list, strongest evidence first; the first that applies decides.
//
// Three laws hold for all of them, and are property tests:
//
//   - Blind is never absent. A look that could not be made changes no state, counts
//     for nothing and uses no rung of the ladder.
//   - Absence of evidence closes nothing. Only looks that count (absence.go) make an
//     operation absent, and even then nothing is closed: it is released for a repeat
//     or put before a person.
//   - Every open operation has a next check.
package rules
