package reports

import (
	"encoding/json"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// looked says how often the provider answered, and what an operation was concluded from
// that was closed without asking it.
func looked(s recon.Story) string {
	switch c := s.Check; {
	case c.Looks == 0 && c.Blinds == 0:
		return unasked(s)
	case c.Blinds == 0:
		return count(c.Looks, "time")
	case c.Looks == 0:
		return unasked(s) + "; tried " + count(c.Blinds, "time") + ", and could not look"
	default:
		return fmt.Sprintf("%s; %s since could not look", count(c.Looks, "time"), count(c.Blinds, "look"))
	}
}

// unasked says why the provider was not asked: it was not due yet, or there was no need.
func unasked(s recon.Story) string {
	if s.Operation.State.Open() {
		return "not yet"
	}
	for i := len(s.Journal) - 1; i >= 0; i-- {
		var b entryBody
		if e := s.Journal[i]; json.Unmarshal(e.Body, &b) == nil && b.From.Open() && b.To == s.Operation.State {
			return "not needed: " + closedBy(s, e.Kind, b)
		}
	}
	return "not here: it was closed when it was recorded"
}

// closedBy says what the entry rests on that closed an operation.
func closedBy(s recon.Story, k recon.EntryKind, b entryBody) string {
	switch k {
	case recon.EntryFinished:
		return "its sender was told"
	case recon.EntryPerson:
		return "a person said what came of it"
	case recon.EntryEvent:
		return "the provider told it by an event"
	}
	for _, id := range b.LookIDs {
		for _, l := range s.Looks {
			if l.ID != id || l.Outcome != recon.Found {
				continue
			}
			switch l.Method {
			case recon.ByStored:
				return "it was among the effects that are stored, such as imported ones"
			case recon.ByEvent:
				return "the provider told it by an event"
			case recon.ByFile:
				return "it was in the imported files of " + string(l.Source)
			}
		}
	}
	return "what was known was enough"
}
