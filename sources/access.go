package sources

import "github.com/seed-1c4f4dc2/reconciler/recon"

// Guarded is a source that knows something of what lets it in, beyond that it does.
type Guarded interface {
	// Access tells what is known of each account now, and asks nobody: what was read before
	// says more.
	Access() []Access
}

// Access is what is known of how one account is opened.
type Access struct {
	Account recon.Account
	Is      string   // what is as it should be; empty: nothing is known to be
	Lacks   []string // what should be otherwise, one sentence each with the next step
}
