package sweep

import (
	"hash/maphash"
	"math"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Of a large file only what takes part in pairing is kept of each line: hashes of its
// identities and a few numbers. The hashes have 64 bits and a seed of their own in every
// run; two different texts that share one could only hide a difference if everything else
// about both lines agreed as well.

// operationRow is what is kept of an operation.
type operationRow struct {
	id, key, effectID, parent, target uint64 // 0: not there
	intent, folded                    uint64
	amount                            int64 // -1: none
	created                           int64 // nanoseconds
	line                              int32 // physical
	brief, place, currency            uint32
}

// effectRow is what is kept of an effect.
type effectRow struct {
	id, reference, key, parent, parent2, cause, target uint64
	amount, total                                      int64 // -1: none
	created                                            int64
	line                                               int32
	system, place, currency, kind, source              uint32
	live                                               bool
}

// rowsOf holds rows in pieces, so that growing copies none.
type rowsOf[T any] struct {
	pieces [][]T
	n      int
	exact  []bool // of each row, whether it must be compared by everything that its line says
}

const pieceBits = 14

func (r *rowsOf[T]) add(v T, exact bool) {
	r.exact = append(r.exact, exact)
	if r.n>>pieceBits == len(r.pieces) {
		r.pieces = append(r.pieces, make([]T, 0, 1<<pieceBits))
	}
	last := len(r.pieces) - 1
	r.pieces[last] = append(r.pieces[last], v)
	r.n++
}

func (r *rowsOf[T]) at(i int32) *T { return &r.pieces[i>>pieceBits][i&(1<<pieceBits-1)] }

// words gives small numbers to the few values that many lines share; 0 is the zero value.
type words[K comparable] struct {
	numbers map[K]uint32
	values  []K
	last    K
	number  uint32
}

func newWords[K comparable]() *words[K] {
	var none K
	return &words[K]{numbers: map[K]uint32{none: 0}, values: []K{none}}
}

func (w *words[K]) of(value K) uint32 {
	if value == w.last {
		return w.number
	}
	n, known := w.numbers[value]
	if !known {
		n = uint32(len(w.values))
		w.numbers[value] = n
		w.values = append(w.values, value)
	}
	w.last, w.number = value, n
	return n
}

// met knows the few values that many rows have.
type met[K comparable] struct {
	last K
	all  map[K]bool
}

// first meets a value, and reports whether it was not met before.
func (m *met[K]) first(value K) bool {
	if len(m.all) > 0 && value == m.last || m.all[value] {
		m.last = value
		return false
	}
	if m.all == nil {
		m.all = map[K]bool{}
	}
	m.last, m.all[value] = value, true
	return true
}

// hashed gives rows of operations and effects their hashes and words.
type hashed struct {
	seed              maphash.Seed
	briefs            *words[brief]
	accounts          *words[recon.Account]
	kinds, currencies *words[string]
	systems, sources  *words[string]
	fold              []byte
}

func newHashed(seed maphash.Seed) *hashed {
	return &hashed{
		seed: seed, briefs: newWords[brief](), accounts: newWords[recon.Account](), kinds: newWords[string](), currencies: newWords[string](),
		systems: newWords[string](), sources: newWords[string](),
	}
}

func (h *hashed) text(s string) uint64 {
	if s == "" {
		return 0
	}
	return maphash.String(h.seed, s) | 1
}

// folded is the hash of an id's fold.
func (h *hashed) folded(id string) uint64 {
	if h.fold = matchers.AppendFold(h.fold[:0], id); len(h.fold) == 0 {
		return 0
	}
	return maphash.Bytes(h.seed, h.fold) | 1
}

func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a *= 0xff51afd7ed558ccd
	return a ^ a>>33 | 1
}

// exactOperation reports whether an operation is not plainly done, or has more to say than its
// row holds.
func exactOperation(op *recon.Operation) bool {
	return op.State != recon.Succeeded || op.Group != "" || op.Reference != "" || op.Account == ""
}

// exactEffect is as exactOperation.
func exactEffect(e *recon.Effect) bool {
	return e.Status != recon.Completed || e.NaturalReference != "" || e.CausedBy != "" || len(e.OtherParents) > 1
}

func (h *hashed) operation(op *recon.Operation, line int) operationRow {
	r := operationRow{
		id: h.text(string(op.ID)), key: h.text(op.Key), effectID: h.text(op.EffectID), parent: h.text(op.Parent), target: h.text(op.Target),
		folded: h.folded(string(op.ID)), amount: -1, created: op.CreatedAt.UnixNano(),
		line: int32(line), brief: h.briefs.of(brief{op.Source, op.Action}), place: h.accounts.of(recon.Account{Account: op.Account, Mode: op.Mode}), currency: h.currencies.of(op.Money.Currency),
	}
	if !op.Money.IsZero() {
		r.amount = op.Money.Minor
	}
	r.intent = mix(mix(mix(h.text(op.Action), r.target), uint64(r.amount)), h.text(op.Mode))
	return r
}

func (h *hashed) effect(e *recon.Effect, line int) effectRow {
	r := effectRow{
		id: h.text(e.ID), reference: h.text(strings.TrimSpace(e.Reference)), key: h.text(e.Key), parent: h.text(e.Parent), cause: h.text(e.CausedBy),
		target: h.text(e.Target), amount: -1, total: -1, created: e.CreatedAt.UnixNano(),
		line: int32(line), system: h.systems.of(e.System), place: h.accounts.of(recon.Account{Account: e.Account, Mode: e.Mode}), currency: h.currencies.of(e.Money.Currency),
		kind: h.kinds.of(e.Kind), source: h.sources.of(string(e.Source)), live: e.Status.Live(),
	}
	if len(e.OtherParents) > 0 {
		r.parent2 = h.text(e.OtherParents[0])
	}
	if !e.Money.IsZero() {
		r.amount = e.Money.Minor
	}
	if e.ParentTotal != nil && *e.ParentTotal >= 0 && *e.ParentTotal < math.MaxInt64 {
		r.total = *e.ParentTotal
	}
	return r
}
