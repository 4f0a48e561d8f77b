package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// maxClauses is how many references one search query may name.
	maxClauses = 10
	// maxSearchText bounds a reference in a query; metadata values hold 500 characters.
	maxSearchText = 400
)

// worthSearching says whether the index may spare pages: some question can only be
// answered by a list, and lies further back than the searches for all of them cost.
func worthSearching(kind string, left []sources.Reach, r *reading, pageSize int) bool {
	if kinds[kind].search == nil {
		return false
	}
	forced, farthest := 0, r.oldest
	for _, one := range left {
		if one.Forced {
			forced++
			farthest = one.From
		}
	}
	queries := (forced + maxClauses - 1) / maxClauses
	return forced > 0 && sources.PagesTo(farthest, r.oldest, r.perSecond(), pageSize) > queries+1
}

// bySearch looks for our references in the index. What it finds need not be listed
// for; what it does not find is still open, and leaves no look: silence of the index
// proves nothing, and neither does a refusal.
func (a *asking) bySearch(ctx context.Context, g sources.Group, questions []sources.Question, left []sources.Reach) error {
	if !a.memory.maySearch(g.List, a.now()) {
		return nil
	}
	var asked []int
	for i, q := range questions {
		if left[i].Forced && searchable(q) {
			asked = append(asked, i)
		}
	}
	for part := range slices.Chunk(asked, maxClauses) {
		var clauses []string
		for _, i := range part {
			clauses = append(clauses, `metadata["`+a.marker+`"]:"`+string(questions[i].Operation)+`"`)
		}
		at := a.now().UTC()
		ex, fault, err := a.do(func() (*exchange, *sources.Error, error) {
			return a.search(ctx, a.place(g.Account, g.Mode), g.Kind, strings.Join(clauses, " OR "))
		})
		if err != nil {
			return err
		}
		var t sources.Trail
		follow(&t, ex)
		if fault != nil {
			var reply replyError
			if errors.As(fault.Err, &reply) && reply.Status < 429 {
				a.memory.searchRefused(g.List, at)
				a.forgive() // the list needs no permission to search
			}
			a.Spare += t.Calls
			return nil
		}
		found := a.hits(g, ex)
		for _, i := range part {
			hit := found[string(questions[i].Operation)]
			if len(hit) == 0 {
				continue
			}
			left[i].Forced = false
			l := a.Look(g.List, recon.BySearch, at)
			l.Reference = string(questions[i].Operation)
			a.Conclude(l, t, hit, nil)
			t = sources.Trail{}
		}
		a.Spare += t.Calls
	}
	return nil
}

func searchable(q sources.Question) bool {
	id := string(q.Operation)
	return id != "" && len(id) <= maxSearchText && !strings.ContainsAny(id, "\"\\\n\r") && slices.Contains(q.Marks, recon.MarkReference)
}

// hits gives the objects of a search page by their reference. The index matches
// without regard to case and on what an object was earlier; only what the object says
// now counts.
func (a *asking) hits(g sources.Group, ex *exchange) map[string][]recon.EffectIdentity {
	found := map[string][]recon.EffectIdentity{}
	for _, raw := range ex.page.Data {
		o, err := readObject(g.Kind, json.RawMessage(raw))
		if err != nil || o.wrongMode(a.place(g.Account, g.Mode).mode) {
			continue
		}
		e := a.effectOf(a.place(g.Account, g.Mode), o)
		a.keep(e, o)
		found[e.Reference] = append(found[e.Reference], e.Identity())
	}
	return found
}
