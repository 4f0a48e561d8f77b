// Package archtest holds the rules of the house that no compiler or linter knows, as
// tests over the source tree: which package may import which, what the vocabulary
// consists of, where SQL may stand, what may not be written at all.
//
// A rule is a function from a tree to faults, and each is shown a tree with a planted
// fault beside the real one, so that no rule can pass by looking at nothing. The tree is
// read by the test itself and not by a child process such as `go list`, because the
// cache of `go test` only knows the files that the test opens: a rule that asks a child
// goes on passing, cached, after the violation was written.
package archtest
