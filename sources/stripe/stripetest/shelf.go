package stripetest

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"
)

// kind is a kind of object, and the shelf that it stands on.
type kind string

const (
	refundKind   kind = "refund"
	chargeKind   kind = "charge"
	intentKind   kind = "payment_intent"
	eventKind    kind = "event"
	movementKind kind = "balance_transaction"
)

var kinds = append([]kind{refundKind, chargeKind, intentKind, eventKind, movementKind}, slices.Sorted(maps.Keys(forms))...)

// object is what stands on a shelf.
type object interface {
	id() string
	born() time.Time
	// home is the kind, and the account and mode, that it belongs to.
	home() (kind, placeID)
	// ref gives the value of a list filter, such as charge; empty when it has none.
	ref(name string) string
	tags() map[string]string
	// show renders the object as the provider would.
	show(f fixtures) map[string]any
	// own replaces what a copy shares with its original.
	own()
}

// row is an object in its place in time.
type row struct {
	object object
	at     time.Time
	seq    int // order of creation where times are equal
}

func (r *row) compare(other *row) int {
	if c := r.at.Compare(other.at); c != 0 {
		return c
	}
	return cmp.Compare(r.seq, other.seq)
}

// ordered is a set of rows, oldest first. It sorts only when it is read and rows came
// out of order, so that a large seed costs one sort.
type ordered struct {
	rows  []*row
	mixed bool
}

func (o *ordered) add(r *row) {
	if n := len(o.rows); n > 0 && o.rows[n-1].compare(r) > 0 {
		o.mixed = true
	}
	o.rows = append(o.rows, r)
}

func (o *ordered) sorted() []*row {
	if o.mixed {
		slices.SortFunc(o.rows, (*row).compare)
		o.mixed = false
	}
	return o.rows
}

// between gives the rows that come after low and before high; nil is no bound.
func (o *ordered) between(low, high *row) []*row {
	rows := o.sorted()
	from, to := 0, len(rows)
	if low != nil {
		from = sort.Search(len(rows), func(i int) bool { return rows[i].compare(low) > 0 })
	}
	if high != nil {
		to = sort.Search(len(rows), func(i int) bool { return rows[i].compare(high) >= 0 })
	}
	if from > to {
		return nil
	}
	return rows[from:to]
}

// indexed are the filters by which shelves keep an index.
var indexed = []string{"charge", "payment_intent", "invoice", "subscription", "customer"}

// shelf holds all objects of one kind in one place.
type shelf struct {
	byID  map[string]*row
	all   *ordered
	byRef map[string]*ordered // by filter name, "=", value
}

func newShelf() *shelf {
	return &shelf{byID: map[string]*row{}, all: &ordered{}, byRef: map[string]*ordered{}}
}

func (sh *shelf) add(r *row) {
	sh.byID[r.object.id()] = r
	sh.all.add(r)
	for _, name := range indexed {
		value := r.object.ref(name)
		if value == "" {
			continue
		}
		key := name + "=" + value
		if sh.byRef[key] == nil {
			sh.byRef[key] = &ordered{}
		}
		sh.byRef[key].add(r)
	}
}

// narrow gives the smallest indexed set that holds all rows with these references.
func (sh *shelf) narrow(refs map[string]string) *ordered {
	for _, name := range indexed {
		if refs[name] == "" {
			continue
		}
		if set := sh.byRef[name+"="+refs[name]]; set != nil {
			return set
		}
		return &ordered{}
	}
	return sh.all
}

// put places an object on its shelf.
func (s *Server) put(p *place, o object) {
	k, _ := o.home()
	s.seq++
	p.shelves[k].add(&row{object: o, at: o.born(), seq: s.seq})
}
