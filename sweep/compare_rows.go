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
	brief, place, currency            uint32
	exact                             bool // must be compared by everything that it says
}

// effectRow is what is kept of an effect.
type effectRow struct {
	id, reference, key, parent, parent2, cause, target uint64
	amount, total                                      int64 // -1: none
	created                                            int64
	system, place, currency, kind, source              uint32
	exact, live                                        bool
}

// rowsOf holds rows in pieces, so that growing copies none.
type rowsOf[T any] struct {
	pieces [][]T
	n      int
}

const pieceBits = 14

func (r *rowsOf[T]) add(v T) {
	if r.n>>pieceBits == len(r.pieces) {
		r.pieces = append(r.pieces, make([]T, 0, 1<<pieceBits))
	}
	last := len(r.pieces) - 1
	r.pieces[last] = append(r.pieces[last], v)
	r.n++
}

func (r *rowsOf[T]) at(i int32) *T { return &r.pieces[i>>pieceBits][i&(1<<pieceBits-1)] }

// words gives small numbers to the few texts that many lines share.
type words struct {
	numbers map[string]uint32
	texts   []string
	last    string
	number  uint32
}

func newWords() *words { return &words{numbers: map[string]uint32{"": 0}, texts: []string{""}} }

func (w *words) of(text string) uint32 {
	if text == w.last {
		return w.number
	}
	n, known := w.numbers[text]
	if !known {
		n = uint32(len(w.texts))
		w.numbers[text] = n
		w.texts = append(w.texts, text)
	}
	w.last, w.number = text, n
	return n
}

// hashed gives rows of operations and effects their hashes and words.
type hashed struct {
	seed                                maphash.Seed
	briefs, accounts, kinds, currencies *words
	systems, sources                    *words
	briefOf                             []brief // by number
}

func newHashed(seed maphash.Seed) *hashed {
	return &hashed{
		seed: seed, briefs: newWords(), accounts: newWords(), kinds: newWords(), currencies: newWords(),
		systems: newWords(), sources: newWords(), briefOf: []brief{{}},
	}
}

func (h *hashed) text(s string) uint64 {
	if s == "" {
		return 0
	}
	return maphash.String(h.seed, s) | 1
}

func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a *= 0xff51afd7ed558ccd
	return a ^ a>>33 | 1
}

func (h *hashed) operation(op *recon.Operation) operationRow {
	b := h.briefs.of(string(op.Source) + "\x00" + op.Action)
	if int(b) == len(h.briefOf) {
		h.briefOf = append(h.briefOf, brief{op.Source, op.Action})
	}
	r := operationRow{
		id: h.text(string(op.ID)), key: h.text(op.Key), effectID: h.text(op.EffectID), parent: h.text(op.Parent), target: h.text(op.Target),
		folded: h.text(matchers.Fold(string(op.ID))), amount: -1, created: op.CreatedAt.UnixNano(),
		brief: b, place: h.accounts.of(op.Account + "\x00" + op.Mode), currency: h.currencies.of(op.Money.Currency),
		// What is not plainly done, or has more to say, is compared by all of it.
		exact: op.State != recon.Succeeded || op.Group != "" || op.Reference != "" || op.Account == "",
	}
	if !op.Money.IsZero() {
		r.amount = op.Money.Minor
	}
	r.intent = mix(mix(mix(h.text(op.Action), r.target), uint64(r.amount)), h.text(op.Mode))
	return r
}

func (h *hashed) effect(e *recon.Effect) effectRow {
	r := effectRow{
		id: h.text(e.ID), reference: h.text(strings.TrimSpace(e.Reference)), key: h.text(e.Key), parent: h.text(e.Parent), cause: h.text(e.CausedBy),
		target: h.text(e.Target), amount: -1, total: -1, created: e.CreatedAt.UnixNano(),
		system: h.systems.of(e.System), place: h.accounts.of(e.Account + "\x00" + e.Mode), currency: h.currencies.of(e.Money.Currency),
		kind: h.kinds.of(e.Kind), source: h.sources.of(string(e.Source)), live: e.Status.Live(),
		exact: e.Status != recon.Completed || e.NaturalReference != "" || e.CausedBy != "" || len(e.OtherParents) > 1,
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

// finder finds rows by a hash, the first that was put.
type finder struct {
	slots []int32 // row + 1
	hash  func(int32) uint64
}

func newFinder(n int, hash func(int32) uint64) *finder {
	size := 16
	for size < n*2 {
		size *= 2
	}
	return &finder{slots: make([]int32, size), hash: hash}
}

// put adds a row and gives the earlier one with its hash, or -1.
func (f *finder) put(i int32) int32 {
	h := f.hash(i)
	mask := uint64(len(f.slots) - 1)
	for at := h >> 1 & mask; ; at = (at + 1) & mask {
		switch was := f.slots[at] - 1; {
		case was < 0:
			f.slots[at] = i + 1
			return -1
		case f.hash(was) == h:
			return was
		}
	}
}

// find gives the row with a hash, or -1.
func (f *finder) find(h uint64) int32 {
	if h == 0 {
		return -1
	}
	mask := uint64(len(f.slots) - 1)
	for at := h >> 1 & mask; ; at = (at + 1) & mask {
		was := f.slots[at] - 1
		if was < 0 || f.hash(was) == h {
			return was
		}
	}
}
