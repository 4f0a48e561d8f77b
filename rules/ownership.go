package rules

import (
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Owns reports whether an effect without operation is one of ours by the policies of its
// source, so that somebody has to explain it: those that make its kind say whether it must
// bear a reference of ours, and who must have made it. A creator that the provider does not
// name may be anybody. Where no policy makes the kind, nothing narrows it.
func Owns(e recon.Effect, policies []recon.Policy) bool {
	narrowed := false
	for _, p := range policies {
		if p.Source != e.Source || p.Effect != "" && p.Effect != e.Kind {
			continue
		}
		marked := p.Orphans != "marked" || strings.TrimSpace(e.Reference) != ""
		by := len(p.OrphansBy) == 0 || e.CreatedBy == "" || slices.Contains(p.OrphansBy, e.CreatedBy)
		if marked && by {
			return true
		}
		narrowed = true
	}
	return !narrowed
}
