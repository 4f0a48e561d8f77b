package matchers

import (
	"strconv"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// candidate suggests operations under the same parent with the same amount and
// currency, where the operation has no live effect of its own. Two equal partial
// refunds of one charge look exactly like this, which is why it never closes.
var candidate = suggester{
	basis: recon.OnCandidate,
	operations: func(p *pairer, o int) []string {
		op := p.operations[o]
		if op.Parent == "" || p.hasLive(o) {
			return nil
		}
		return []string{candidateWord(op.Parent, op.Money)}
	},
	effects: func(e *recon.Effect) []string {
		var words []string
		for _, parent := range append([]string{e.Parent}, e.OtherParents...) {
			if parent != "" {
				words = append(words, candidateWord(parent, e.Money))
			}
		}
		return words
	},
	suits: func(*recon.Operation, *recon.Effect) bool { return true },
}

func candidateWord(parent string, m recon.Money) string {
	if m.IsZero() {
		return parent
	}
	return parent + "\x00" + strconv.FormatInt(m.Minor, 10) + "\x00" + m.Currency
}

// hasLive reports whether the operation owns an effect that exists or may yet.
func (p *pairer) hasLive(o int) bool {
	if p.live == nil {
		p.live = make([]bool, len(p.operations))
		for e, owner := range p.owner {
			if owner >= 0 && p.effects[e].Status.Live() {
				p.live[owner] = true
			}
		}
		for e, g := range p.groupOf {
			if p.effects[e].Status.Live() {
				for _, o := range g.members {
					p.live[o] = true
				}
			}
		}
	}
	return p.live[o]
}

// sharedNatural suggests the operations of a natural reference that names several,
// or one that failed.
var sharedNatural = suggester{
	basis: recon.OnNaturalReference,
	operations: func(p *pairer, o int) []string {
		if r := p.operations[o].Reference; r != "" {
			return []string{norm.NFC.String(r)}
		}
		return nil
	},
	effects: func(e *recon.Effect) []string {
		if e.NaturalReference == "" {
			return nil
		}
		return []string{norm.NFC.String(e.NaturalReference)}
	},
	suits: func(*recon.Operation, *recon.Effect) bool { return true },
}
