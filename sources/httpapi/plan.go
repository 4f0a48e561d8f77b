package httpapi

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// minProbe is how many single requests must be at stake before a page is read just to learn
// how densely objects lie.
const minProbe = 3

// groupID names the questions that can share one list.
type groupID struct{ account, mode, kind string }

// group is the questions that one list can answer, the youngest first.
type group struct {
	id        groupID
	place     *place
	questions []sources.Question
}

func (g group) oldest() time.Time { return g.questions[len(g.questions)-1].From }

// single is one request that answers a question alone.
type single struct {
	*endpoint
	want string
}

// singles gives the requests by which a question can be answered alone, those first whose
// silence counts. A mark that was not sent is not asked for.
func (k *kind) singles(q sources.Question) []single {
	sent := func(m recon.Mark, value string) string {
		if slices.Contains(q.Marks, m) {
			return value
		}
		return ""
	}
	var list []single
	for _, s := range []single{
		{k.byID, q.EffectID}, {k.byReference, sent(recon.MarkReference, string(q.Operation))},
		{k.byKey, sent(recon.MarkKey, q.Key)}, {k.byParent, q.Parent},
	} {
		if s.endpoint != nil && s.want != "" {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b single) int { return cmp.Compare(a.worth(), b.worth()) })
	return list
}

// worth orders requests: the effect's own id, then those whose silence counts.
func (s single) worth() int {
	switch {
	case s.method == recon.ByID:
		return 0
	case s.strong:
		return 1
	}
	return 2
}

// partition sorts a batch into groups, and gives what cannot be asked at all: another
// account or mode, or a kind that is not observed here. A question without account or mode
// goes to all that it could mean.
func (s *Source) partition(batch []sources.Question) (groups, foreign []group) {
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
		for _, p := range s.places {
			if s.kinds[q.Kind] != nil && (q.Account == "" || q.Account == p.Account.Account) && (q.Mode == "" || q.Mode == p.Mode) {
				add(groupID{p.Account.Account, p.Mode, q.Kind}, p, q)
				asked = true
			}
		}
		if !asked {
			add(groupID{q.Account, q.Mode, q.Kind}, nil, q)
		}
	}
	for _, g := range byID {
		slices.SortFunc(g.questions, byAge)
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

// byAge puts the youngest question first, in an order that does not depend on the batch's.
func byAge(a, b sources.Question) int {
	return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.EffectID, b.EffectID),
		cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Key, b.Key))
}

// pays says whether one more page of the window is worth its request: some question can be
// reached for no more pages than the single requests that it and the younger ones cost, or
// nothing but the list can answer it. left holds, the youngest first, the time back to
// which each question must be read, and whether it could be asked singly.
func pays(left []reach, oldest time.Time, perSecond float64, pageSize int) bool {
	for i, r := range left {
		if r.forced {
			return true
		}
		saved := i + 1
		pages := perSecond * oldest.Sub(r.from).Seconds() / float64(pageSize)
		if perSecond < 0 && saved >= minProbe || perSecond >= 0 && saved > 1 && max(1, pages) <= float64(saved) {
			return true
		}
	}
	return false
}

// reach is how far back a list must be read for a question.
type reach struct {
	from   time.Time
	forced bool // nothing but the list can answer
}
