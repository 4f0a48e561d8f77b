package sources

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// overlap is how much earlier a list begins than the oldest question, because providers
	// count in whole seconds.
	overlap = 2 * time.Second
	// minProbe is how many single requests must be at stake before a page is read just to
	// learn how densely objects lie.
	minProbe = 3
)

// Since is where a list begins so that nothing of the second of t is left out.
func Since(t time.Time) time.Time { return t.Add(-overlap).Truncate(time.Second).UTC() }

// Group is the questions of a batch that one list can answer, the youngest first.
type Group struct {
	List
	Questions []Question
}

// Oldest is the earliest time that the group asks about.
func (g Group) Oldest() time.Time { return g.Questions[len(g.Questions)-1].From }

// Only gives the group with some of its questions.
func (g Group) Only(questions []Question) Group { return Group{g.List, questions} }

// Partition sorts a batch into groups, and gives what cannot be asked at all: another
// account or mode than those of the sheet, or a kind that is not observed. A question
// without account or mode goes to all that it could mean. The order does not depend on
// that of the questions.
func Partition(batch []Question, sheet recon.Sheet) (groups, foreign []Group) {
	ours, others := map[List]*Group{}, map[List]*Group{}
	add := func(to map[List]*Group, l List, q Question) {
		if to[l] == nil {
			to[l] = &Group{List: l}
		}
		to[l].Questions = append(to[l].Questions, q)
	}
	for _, q := range batch {
		asked := false
		for _, p := range sheet.Accounts {
			if slices.Contains(sheet.Kinds, q.Kind) && (q.Account == "" || q.Account == p.Account) && (q.Mode == "" || q.Mode == p.Mode) {
				add(ours, List{Kind: q.Kind, Account: p.Account, Mode: p.Mode}, q)
				asked = true
			}
		}
		if !asked {
			add(others, List{Kind: q.Kind, Account: q.Account, Mode: q.Mode}, q)
		}
	}
	return inOrder(ours), inOrder(others)
}

func inOrder(by map[List]*Group) []Group {
	list := make([]Group, 0, len(by))
	for _, g := range by {
		slices.SortFunc(g.Questions, byAge)
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// byAge puts the youngest question first, in an order that does not depend on the batch's.
func byAge(a, b Question) int {
	return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.EffectID, b.EffectID),
		cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Key, b.Key))
}

// Reach is what a list saves by reading back to one question.
type Reach struct {
	From   time.Time // with the overlap
	Saves  int       // single requests that are then no longer needed
	Forced bool      // nothing but the list can answer
}

// Pays says whether one more page is worth its request: some question can be reached for no
// more pages than the single requests that it and the younger ones cost, or can be answered
// by nothing else. A single question left is never worth it: one request for one question
// reads less. left holds the youngest first; the list was read back to oldest; perSecond is
// how densely objects lie, negative when that is not known yet.
func Pays(left []Reach, oldest time.Time, perSecond float64, pageSize int) bool {
	saved := 0
	for _, r := range left {
		saved += r.Saves
		if r.Forced {
			return true
		}
		if perSecond < 0 {
			if saved >= minProbe {
				return true
			}
			continue
		}
		if saved > 1 && PagesTo(r.From, oldest, perSecond, pageSize) <= saved {
			return true
		}
	}
	return false
}

// PagesTo estimates the pages from oldest back to a time.
func PagesTo(from, oldest time.Time, perSecond float64, pageSize int) int {
	pages := math.Ceil(perSecond * oldest.Sub(from).Seconds() / float64(pageSize))
	return int(max(1, min(pages, math.MaxInt32)))
}
