// Package large simulates months of a company whose agents pay, refund and write letters
// at three providers, so that the whole product is held against a world that knows the
// truth: a provider with keys, lists, events and webhooks, an account of it whose key opens
// no object, so that only events tell of it, a bank that can only be listed, and a letter
// service that is asked by our reference and forgets. Half of all companies have two
// accounts; agents go by clocks of their own. People click in Slack whatever it shows them,
// also some who may not, and run commands. Four fifths of what a company ever did was done
// before it had the product, and is imported.
//
// A [Plan] is drawn from a seed before anything happens: what agents mean to do and what
// goes wrong with each of it, and what befalls the company besides: outages of a provider or
// of one account, answers that never come, deaths of processes at any statement, commit or
// request, an endpoint that is away, secrets that are rolled, a workspace that fails at any of
// its methods, a policy that changes, effects made by hand. [Run] lives through it, in a database of its own, by a simulated clock that
// jumps from one appointment to the next. Everything that the product touches is real.
//
// What is true is kept in a [book] by the providers' side alone. The judge holds the ledger
// against it and demands every invariant of the design, each by its name: a request only
// after its row and under a live lease, one key for ever, at most one effect of an operation
// caused by us; nothing closed against the truth at any moment, nor without what the
// journal names for it; a stale token without effect; nothing open without a plan; notices
// that stand where they were delivered or are counted; totals that add up; no write by the
// product. Every planted fault is found, and no finding is told that the truth does not
// bear out.
//
// A world that goes wrong is made small by [Shrink] and kept as a [Found], for a test.
package large
