// Package sweep conducts: it reads what is due from the ledger, asks a source for the
// rest, lets matchers pair and rules decide, and has everything of a batch recorded in
// one transaction. It holds no rule of its own. Whom to tell of what it found is
// planned from the recorded findings.
//
// It promises that a run can be stopped between any two steps and run again, and
// ends in the same ledger; that one source is swept by one process at a time; that a
// source which does not answer is not asked for every operation again and again, while
// what is stored still concludes; and that a run which would change more than it may
// stops before it does.
//
//	take the source ─ due ─ ask ─ pair ─ decide ─ record ─┐
//	                   ▲                                  │
//	                   └───────── until nothing is due ───┘
package sweep
