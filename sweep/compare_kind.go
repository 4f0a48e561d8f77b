package sweep

import (
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// kindCount infers which kind of effect an action makes, where no configuration says
// so. It matters because our reference may stand on several objects of one request: a
// charge carries the metadata of its payment intent.
type kindCount struct {
	kinds  map[recon.SourceName]map[string]bool
	named  map[brief]map[string]int
	format *files.Format // of the file; nil: JSON Lines, whose kinds are the writer's own words
}

// newKinds counts, for every action, the kinds of effects that name its operations by
// reference or key.
func newKinds(in compareInput, format *files.Format) kindCount {
	k := kindCount{kinds: map[recon.SourceName]map[string]bool{}, named: map[brief]map[string]int{}, format: format}
	for i := range in.effects {
		e := in.effects[i]
		if k.kinds[e.Source] == nil {
			k.kinds[e.Source] = map[string]bool{}
		}
		k.kinds[e.Source][e.Kind] = true
	}
	several := slices.ContainsFunc(keysOf(k.kinds), func(s recon.SourceName) bool { return len(k.kinds[s]) > 1 })
	if !several {
		return k // every source has one kind: nothing to count
	}
	byID, byKey := map[string]brief{}, map[string]brief{}
	for i := range in.operations {
		op := in.operations[i]
		b := brief{op.Source, op.Action}
		byID[string(op.ID)] = b
		if op.Key != "" {
			byKey[op.Key] = b
		}
	}
	for i := range in.effects {
		e := in.effects[i]
		b, ok := byID[strings.TrimSpace(e.Reference)]
		if !ok {
			b, ok = byKey[e.Key]
		}
		if !ok || b.source != e.Source {
			continue
		}
		if k.named[b] == nil {
			k.named[b] = map[string]int{}
		}
		k.named[b][e.Kind]++
	}
	return k
}

func keysOf[K comparable, V any](m map[K]V) []K {
	list := make([]K, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	return list
}

// of gives the kind that an action makes: the only one of its source; else the one
// that the action is named for (refund.create makes a refund); else the one that most
// often names its operations, the first by alphabet of equals; else any.
func (k kindCount) of(b brief) string {
	kinds := keysOf(k.kinds[b.source])
	noun, _, _ := strings.Cut(b.action, ".")
	if namesKind(k.format, noun) {
		return noun
	}
	if len(kinds) == 1 {
		return kinds[0]
	}
	if slices.Contains(kinds, noun) {
		return noun
	}
	slices.Sort(kinds)
	best := ""
	for _, kind := range kinds {
		if n := k.named[b][kind]; n > 0 && (best == "" || n > k.named[b][best]) {
			best = kind
		}
	}
	return best
}

// countKinds is newKinds for rows. Effects that several lines tell of are counted line by
// line, or as again says, once it is known what they say together.
func (s *sieve) countKinds(again []*recon.Effect) kindCount {
	k := kindCount{kinds: map[recon.SourceName]map[string]bool{}, named: map[brief]map[string]int{}, format: s.o.EffectsFormat}
	several := false
	s.eachCounted(again, func(e *effectRow) {
		source := recon.SourceName(s.theirs.sources.values[e.source])
		if k.kinds[source] == nil {
			k.kinds[source] = map[string]bool{}
		}
		k.kinds[source][s.theirs.kinds.values[e.kind]] = true
		several = several || len(k.kinds[source]) > 1
	})
	if !several {
		return k
	}
	s.eachCounted(again, func(e *effectRow) {
		o := s.byID.find(e.reference)
		if o < 0 {
			o = s.byKey.find(e.key)
		}
		if o < 0 {
			return
		}
		b := s.ours.briefs.values[s.operations.at(o).brief]
		if string(b.source) != s.theirs.sources.values[e.source] {
			return
		}
		if k.named[b] == nil {
			k.named[b] = map[string]int{}
		}
		k.named[b][s.theirs.kinds.values[e.kind]]++
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
