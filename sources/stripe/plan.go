package stripe

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// minProbe is how many single calls must be at stake before a page is read just to
// learn how densely objects lie.
const minProbe = 3

// group is the questions that one list can answer, the youngest first.
type group struct {
	id        groupID
	place     *place
	questions []sources.Question
}

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

// partition sorts a batch into groups, and gives what cannot be asked at all: another
// account or mode, or a kind that is not observed here. A question without account or
// mode goes to all that it could mean.
func partition(batch []sources.Question, places []*place) (groups []group, foreign []group) {
	byID := map[groupID]*group{}
	add := func(id groupID, p *place, q sources.Question) {
		g := byID[id]
		if g == nil {
			g = &group{id: id, place: p}
			byID[id] = g
		}
		g.questions = append(g.questions, q)
	}
	for _, q := range batch {
		asked := false
		for _, p := range places {
			if kinds[q.Kind] != nil &&
				(q.Account == "" || q.Account == p.account) && (q.Mode == "" || q.Mode == p.mode) {
				add(groupID{p.account, p.mode, q.Kind}, p, q)
				asked = true
			}
		}
		if !asked {
			add(groupID{q.Account, q.Mode, q.Kind}, nil, q)
		}
	}
	for _, g := range byID {
		slices.SortFunc(g.questions, func(a, b sources.Question) int {
			return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.Operation, b.Operation),
				cmp.Compare(a.EffectID, b.EffectID), cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Key, b.Key))
		})
		if g.place == nil {
			foreign = append(foreign, *g)
		} else {
			groups = append(groups, *g)
		}
	}
	for _, list := range [][]group{groups, foreign} {
		slices.SortFunc(list, func(a, b group) int {
			return cmp.Or(cmp.Compare(a.id.account, b.id.account), cmp.Compare(a.id.mode, b.id.mode), cmp.Compare(a.id.kind, b.id.kind))
		})
	}
	return groups, foreign
}

// oldest is the earliest time that a group asks about.
func (g group) oldest() time.Time { return g.questions[len(g.questions)-1].From }

// reach is what a list saves by reading back to a time.
type reach struct {
	from   time.Time // with the overlap
	saves  int       // single calls that are no longer needed
	forced bool      // nothing but the list can answer
}

// reaches gives the worth of reading back to each question, the youngest first. A
// single call that serves several questions is saved only at the oldest of them.
func reaches(questions []sources.Question) []reach {
	last := map[single]int{}
	for i, q := range questions {
		if one, ok := singleOf(q); ok {
			last[one] = i
		}
	}
	list := make([]reach, len(questions))
	for i, q := range questions {
		one, ok := singleOf(q)
		list[i] = reach{from: since(q.From), forced: !ok}
		if ok && last[one] == i {
			list[i].saves = 1
		}
	}
	return list
}

// pays says whether one more page is worth its call: some question can be reached for
// no more pages than the single calls that it and the younger ones cost, or can be
// answered by nothing else. A single question left is never worth it: one call for one
// question reads less. perSecond < 0: not known yet.
func pays(left []reach, oldest time.Time, perSecond float64, pageSize int) bool {
	saved := 0
	for _, r := range left {
		saved += r.saves
		if r.forced {
			return true
		}
		if perSecond < 0 {
			if saved >= minProbe {
				return true
			}
			continue
		}
		if saved > 1 && pagesTo(r.from, oldest, perSecond, pageSize) <= saved {
			return true
		}
	}
	return false
}

// pagesTo estimates the pages from oldest back to a time.
func pagesTo(from, oldest time.Time, perSecond float64, pageSize int) int {
	pages := math.Ceil(perSecond * oldest.Sub(from).Seconds() / float64(pageSize))
	return int(max(1, min(pages, math.MaxInt32)))
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
