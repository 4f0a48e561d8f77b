package stripe

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// single is the one call by which a question can be answered alone.
type single struct {
	id     string // the effect's own
	parent string // what it hangs under
	filter string // the parameter that takes the parent
}

// singleOf says how a question can be answered by one call, false if only a list of
// the window can.
func singleOf(q sources.Question) (single, bool) {
	if q.EffectID != "" {
		return single{id: q.EffectID}, true
	}
	return parentOf(q)
}

// parentOf gives the list of a question's parent, where Stripe has one that is short:
// what an account or a bank account ever received is not listed for one question.
func parentOf(q sources.Question) (single, bool) {
	k := kinds[q.Kind]
	prefix, _, _ := strings.Cut(q.Parent, "_")
	parameter := parameters[prefix]
	if k == nil || parameter == "" || !slices.Contains(k.filters, parameter) {
		return single{parent: q.Parent}, false
	}
	return single{parent: q.Parent, filter: parameter}, true
}

// reaches gives the worth of reading back to each question, the youngest first. A
// single call that serves several questions is saved only at the oldest of them.
func reaches(questions []sources.Question) []sources.Reach {
	last := map[single]int{}
	for i, q := range questions {
		if one, ok := singleOf(q); ok {
			last[one] = i
		}
	}
	list := make([]sources.Reach, len(questions))
	for i, q := range questions {
		one, ok := singleOf(q)
		list[i] = sources.Reach{From: sources.Since(q.From), Forced: !ok}
		if ok && last[one] == i {
			list[i].Saves = 1
		}
	}
	return list
}

// sightings is what was seen in a group so far, indexed for the question whether a
// look by key could tell more.
type sightings struct {
	ids        map[string]bool
	references map[string]bool
	bare       map[recon.Money]time.Time // without reference: the youngest of each amount
	anyBare    time.Time
}

func sight(effects []recon.Effect) sightings {
	s := sightings{ids: map[string]bool{}, references: map[string]bool{}, bare: map[recon.Money]time.Time{}}
	for _, e := range effects {
		s.ids[e.ID] = true
		if e.Reference != "" {
			s.references[e.Reference] = true
			continue
		}
		if e.CreatedAt.After(s.bare[e.Money]) {
			s.bare[e.Money] = e.CreatedAt
		}
		if e.CreatedAt.After(s.anyBare) {
			s.anyBare = e.CreatedAt
		}
	}
	return s
}

// wantsKey reports whether a look by the idempotency key could still tell something:
// the key was sent, nothing that was seen bears our reference or is the known effect,
// and either no reference was sent, or something was seen that bears none and could
// be the effect.
func (s sightings) wantsKey(q sources.Question) bool {
	if q.Key == "" || s.ids[q.EffectID] || s.references[string(q.Operation)] || q.Group != "" && s.references[q.Group] {
		return false
	}
	youngest := s.bare[q.Money]
	if q.Money.IsZero() {
		youngest = s.anyBare
	}
	candidate := !youngest.IsZero() && !youngest.Before(q.From.Truncate(time.Second))
	return candidate || !slices.Contains(q.Marks, recon.MarkReference)
}
