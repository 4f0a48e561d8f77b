package matchers

import (
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lookalike suggests operations whose id stands in the effect's reference with other
// case, spaces, quotes or a prefix ("Ref. OP_1510"). It is never more than a hint: a
// rule lenient enough to take all of those would one day take another's.
var lookalike = suggester{
	basis: recon.OnLookalike,
	operations: func(p *pairer, o int) []string {
		if f := fold(string(p.operations[o].ID)); f != "" {
			return []string{f}
		}
		return nil
	},
	effects: func(e *recon.Effect) []string { return readings(e.Reference) },
	suits: func(o *recon.Operation, e *recon.Effect) bool {
		return looksLike(strings.TrimSpace(e.Reference), string(o.ID))
	},
}

// maxWords bounds how many words of a reference may be a prefix.
const maxWords = 4

// readings gives what a reference may mean: all of it, and what is left without one
// to three leading words.
func readings(reference string) []string {
	var list []string
	words := strings.FieldsFunc(reference, func(r rune) bool { return strings.ContainsRune(" .:#/\t'\"", r) })
	for i := range min(len(words), maxWords) {
		if f := fold(strings.Join(words[i:], "")); f != "" {
			list = append(list, f)
		}
	}
	return list
}

// looksLike reports whether reference is id but for case, spaces, signs or a prefix.
func looksLike(reference, id string) bool {
	if reference == id {
		return false
	}
	want := fold(id)
	for _, r := range readings(reference) {
		if r == want {
			return true
		}
	}
	return false
}

// AppendFold appends the fold of an id: what is left of it when people copy it by hand. Two
// ids may look alike only where their folds are equal. It makes no text of it, for those who
// fold many.
func AppendFold(to []byte, id string) []byte {
	start := len(to)
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			to = append(to, c)
		case c >= 'A' && c <= 'Z':
			to = append(to, c+('a'-'A'))
		case c >= 0x80:
			return append(to[:start], fold(id)...)
		}
	}
	return to
}

// Readings gives the folds of the ids that a reference may look like.
func Readings(reference string) []string { return readings(reference) }
