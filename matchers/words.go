package matchers

import "github.com/seed-1c4f4dc2/reconciler/recon"

// OperationWords are what an operation can be paired by, with any certainty: it and an
// effect that Pair pairs share at least one of them. Who holds many effects finds with
// them the few that a handful of operations may have to do with.
func OperationWords(o *recon.Operation) []string {
	words := identities(func(m *matcher) string { return m.ofOperation(o) })
	if o.Group != "" {
		words = append(words, word(recon.OnReference, o.Group))
	}
	if f := fold(string(o.ID)); f != "" {
		words = append(words, word(recon.OnLookalike, f))
	}
	if o.Parent != "" {
		words = append(words, word(recon.OnCandidate, candidateWord(o.Parent, o.Money)))
	}
	return words
}

// EffectWords are the same of an effect.
func EffectWords(e *recon.Effect) []string {
	words := identities(func(m *matcher) string { return m.ofEffect(e) })
	if e.Owner != "" {
		words = append(words, word(recon.OnReference, e.Owner))
	}
	for _, w := range lookalike.effects(e) {
		words = append(words, word(recon.OnLookalike, w))
	}
	for _, w := range candidate.effects(e) {
		words = append(words, word(recon.OnCandidate, w))
	}
	return words
}

func identities(of func(*matcher) string) []string {
	words := make([]string, 0, len(linking)+2)
	for i := range linking {
		if w := of(&linking[i]); w != "" {
			words = append(words, word(linking[i].basis, w))
		}
	}
	return words
}

func word(b recon.Basis, w string) string { return string(b) + "\x00" + w }
