package sweep

import (
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// kindCount infers which kind of effect an action makes, where no configuration says
// so. It matters because our reference may stand on several objects of one request: a
// charge carries the metadata of its payment intent.
type kindCount struct {
	kinds  map[recon.SourceName]map[string]bool
	counts map[brief]map[string]int // of effects that name an operation of the action, by kind
	format *files.Format            // of the file; nil: JSON Lines, whose kinds are the writer's own words
}

// newKinds counts, for every action, the kinds of effects that name its operations by
// reference or key.
func newKinds(in compareInput, format *files.Format) kindCount {
	k := kindCount{kinds: map[recon.SourceName]map[string]bool{}, counts: map[brief]map[string]int{}, format: format}
	for i := range in.effects {
		e := in.effects[i]
		if k.kinds[e.Source] == nil {
			k.kinds[e.Source] = map[string]bool{}
		}
		k.kinds[e.Source][e.Kind] = true
	}
	places := placesOf(in.operations)
	if k.named(places) {
		return k // nothing to count
	}
	byID, byKey, byEffectID := map[string]brief{}, map[string]brief{}, map[string]brief{}
	put := func(by map[string]brief, name string, b brief) {
		if _, shared := by[name]; shared {
			b = brief{} // it says nothing of either
		}
		by[name] = b
	}
	for _, op := range in.operations {
		b := brief{op.Source, op.Action}
		put(byID, string(op.ID), b)
		put(byKey, op.Key, b)
		put(byEffectID, op.EffectID, b)
	}
	for _, e := range in.effects {
		b, ok := byID[strings.TrimSpace(e.Reference)]
		if !ok && e.Key != "" {
			b, ok = byKey[e.Key]
		}
		if !ok {
			b = byEffectID[e.ID]
		}
		if b.source == "" || b.source != e.Source {
			continue
		}
		if k.counts[b] == nil {
			k.counts[b] = map[string]int{}
		}
		k.counts[b][e.Kind]++
	}
	return k
}

// named reports whether the name of every action says which kind it makes.
func (k kindCount) named(places map[briefPlace]bool) bool {
	for at := range places {
		if k.noun(at.brief) == "" {
			return false
		}
	}
	return true
}

// noun gives the kind that an action is named for: refund.create makes a refund, where there
// is one, or where the file's provider has that word.
func (k kindCount) noun(b brief) string {
	noun, _, _ := strings.Cut(b.action, ".")
	if namesKind(k.format, noun) || k.kinds[b.source][noun] {
		return noun
	}
	return ""
}

// of gives the kind that an action makes: the one that it is named for; else the one that
// most often names its operations, the first by alphabet of equals; else none, and then
// nobody knows whether what it makes would be in the file: that other actions make refunds
// says nothing of a payout.
func (k kindCount) of(b brief) string {
	best := k.noun(b)
	if best != "" {
		return best
	}
	for _, kind := range sortedNames(k.kinds[b.source]) {
		if n := k.counts[b][kind]; n > 0 && (best == "" || n > k.counts[b][best]) {
			best = kind
		}
	}
	return best
}

// countKinds is newKinds for rows. Effects that several lines tell of are counted line by
// line, or as again says, once it is known what they say together.
func (s *sieve) countKinds(again []*recon.Effect) kindCount {
	k := kindCount{kinds: map[recon.SourceName]map[string]bool{}, counts: map[brief]map[string]int{}, format: s.o.EffectsFormat}
	type shown struct{ source, kind uint32 }
	var seen met[shown]
	s.eachCounted(again, func(e *effectRow) {
		if !seen.first(shown{e.source, e.kind}) {
			return
		}
		source := recon.SourceName(s.theirs.sources.values[e.source])
		if k.kinds[source] == nil {
			k.kinds[source] = map[string]bool{}
		}
		k.kinds[source][s.theirs.kinds.values[e.kind]] = true
	})
	if k.named(s.facts.places) {
		return k
	}
	s.eachCounted(again, func(e *effectRow) {
		o := s.byID.find(e.reference)
		shared := false
		if o < 0 {
			o, shared = s.byKey.find(e.key), s.sharedKeys[e.key]
		}
		if o < 0 {
			o, shared = s.byEffectID.find(e.id), s.sharedEffectIDs[e.id]
		}
		if o < 0 || shared {
			return
		}
		b := s.ours.briefs.values[s.operations.at(o).brief]
		if string(b.source) != s.theirs.sources.values[e.source] {
			return
		}
		if k.counts[b] == nil {
			k.counts[b] = map[string]int{}
		}
		k.counts[b][s.theirs.kinds.values[e.kind]]++
	})
	return k
}

// eachCounted gives the rows of effects, those of repeated ones as again has them.
func (s *sieve) eachCounted(again []*recon.Effect, take func(*effectRow)) {
	for i := range int32(s.effects.n) {
		if e := s.effects.at(i); again == nil || !s.repeated[e.id] {
			take(e)
		}
	}
	for _, e := range again {
		row := s.theirs.effect(e, 0)
		take(&row)
	}
}
