package files

import (
	"hash/maphash"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Twins knows the rows of one file by their effects: which of them tell of an effect
// again, and whether two of them contradict each other. It keeps some sixty bytes a row.
type Twins struct {
	seed   maphash.Seed
	first  map[uint64]int32 // by hash of the identity: the last of its claims
	claims []claim
}

// claim is what one row says of an effect at one stage.
type claim struct {
	amount    int64
	reference uint64 // hash; 0: not told
	line      int32
	before    int32 // another claim of the same effect, or -1
	currency  [3]byte
	status    uint8
}

// NewTwins begins a file.
func NewTwins() *Twins {
	return &Twins{seed: maphash.MakeSeed(), first: map[uint64]int32{}}
}

// Meet is told of every row that was read, in order. It reports whether an earlier row
// told of the same effect. A row of the same status with another amount, currency or
// reference is a *[Fault] that names both lines: nobody knows which is right.
func (t *Twins) Meet(row *Row) (again bool, err error) {
	e := &row.Effect
	key := t.hash(e.Account, e.Mode, e.ID)
	now := claim{amount: e.Money.Minor, line: int32(row.Line), before: -1, status: statusNumber(e.Status)}
	copy(now.currency[:], e.Money.Currency)
	if e.Reference != "" {
		now.reference = t.hash(e.Reference) | 1
	}
	last, again := t.first[key]
	if again {
		now.before = last
		for at := last; at >= 0; at = t.claims[at].before {
			old := t.claims[at]
			if field := old.contradicts(now); field != "" {
				return true, faultf(row.Line, "effect %s stands on line %d already, with the same status and another %s; remove the wrong line",
					recon.Printable(e.ID), old.line, field)
			}
			if old.status == now.status && old.amount == now.amount && old.reference == now.reference {
				return true, nil // nothing to remember
			}
		}
	}
	t.first[key] = int32(len(t.claims))
	t.claims = append(t.claims, now)
	return again, nil
}

func (c claim) contradicts(o claim) string {
	switch {
	case c.status != o.status:
		return ""
	case c.amount != 0 && o.amount != 0 && c.amount != o.amount:
		return "amount"
	case c.currency != o.currency && c.currency != [3]byte{} && o.currency != [3]byte{}:
		return "currency"
	case c.reference != 0 && o.reference != 0 && c.reference != o.reference:
		return "reference"
	}
	return ""
}

func (t *Twins) hash(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, p := range parts {
		h.WriteString(p)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// statusNumber tells statuses apart; two of one rank are two.
func statusNumber(s recon.EffectStatus) uint8 {
	n := uint8(s.Rank())
	if s == recon.Reversed {
		n++
	}
	return n
}
