package recon

import "time"

// Event is one message of a provider about one of its objects, as it was delivered or
// read from the provider's own list of events. An event is a claim about the past: what
// it shows may have changed since, and it may come late, twice or before others.
type Event struct {
	Source  SourceName
	System  string
	Account string // as the event says it; the source's only one where it says none
	Mode    string
	ID      string // the provider's id of the event, not of the object
	Type    string // "refund.updated"
	// Version is that of the provider's interface in which the event is written, as it says
	// itself. Empty where it was not read; "unknown" where it says none.
	Version   string
	CreatedAt time.Time
	// Signed says that the provider vouches for it: its signature was right, or it was
	// read from the provider itself. Any other event is a hint to look, never evidence.
	Signed bool
	Body   []byte // as it came, byte by byte; nil where the raw bytes were dropped
}
