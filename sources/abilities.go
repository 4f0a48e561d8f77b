package sources

import (
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// defaultLag is how long what exists is taken to stay unseen where nothing else is said.
const defaultLag = recon.Duration(time.Minute)

// Weakest makes one ability for each method of a sheet out of those of single look-ups, with
// the marks that the method needs. Where look-ups of one method differ, from kind to kind or
// between a parent's list and that of a window, the weakest one counts. A lag of 0 is a
// minute.
func Weakest(lookups []recon.Ability) []recon.Ability {
	var list []recon.Ability
	for _, m := range []recon.Method{recon.ByID, recon.ByReference, recon.ByKey, recon.ByList} {
		all := recon.Ability{Method: m, Consistency: recon.Strong, NeedsMark: marksOf(m)}
		for _, a := range lookups {
			if a.Method == m {
				all = weaker(all, a)
			}
		}
		if len(all.Kinds) > 0 {
			list = append(list, all)
		}
	}
	return list
}

func weaker(all, a recon.Ability) recon.Ability {
	if a.Consistency != recon.Strong {
		all.Consistency = recon.Eventual
	}
	if a.Lag == 0 {
		a.Lag = defaultLag
	}
	all.Lag = max(all.Lag, a.Lag)
	if a.History > 0 && (all.History == 0 || a.History < all.History) {
		all.History = a.History
	}
	for _, kind := range a.Kinds {
		if !slices.Contains(all.Kinds, kind) {
			all.Kinds = append(all.Kinds, kind)
		}
	}
	return all
}

// marksOf are the marks by which a method finds an effect whose id is not known.
func marksOf(m recon.Method) []recon.Mark {
	switch m {
	case recon.ByReference:
		return []recon.Mark{recon.MarkReference}
	case recon.ByKey:
		return []recon.Mark{recon.MarkKey}
	case recon.ByList:
		return []recon.Mark{recon.MarkReference, recon.MarkKey}
	}
	return nil
}
