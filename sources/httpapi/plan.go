package httpapi

import (
	"cmp"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

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
