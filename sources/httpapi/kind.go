package httpapi

import (
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// kind is one kind of effect, ready to be asked for and read.
type kind struct {
	name     string
	fields   fields
	only     map[string]pathAndText
	required map[string]Path
	words    sources.Fields
	dates    dates
	log      *eventLog
	summary  bool
	sparse   bool

	byID, byReference, byKey, byParent, list *endpoint
}

// fields are the paths of an object's fields; nil where there is none.
type fields struct {
	id, createdAt, updatedAt, status, amount, currency, parent, reference, key, natural Path
	target, account, mode, failureReason, createdBy                                     Path
	targetHash                                                                          []Path
}

type pathAndText struct {
	path Path
	text string
}

// eventLog reads an object's log of events.
type eventLog struct {
	items, kind, at Path
	types           map[string]recon.EffectStatus
}

// endpoint is one look-up.
type endpoint struct {
	name        string // by_id, by_reference…
	method      recon.Method
	path        string
	query       map[string]string
	items       Path // nil: the reply is one object
	object      Path
	notFound    notFound
	strong      bool
	newestFirst bool
	since       *bound
	until       *bound
	paging      *paging // nil: one reply is all
	matches     Path    // the field that must hold what was asked for
	success     *pathAndText
}

// notFound is a reply that means "not there".
type notFound struct {
	status int
	path   Path
	equals string
	empty  bool
}

// bound is a parameter that bounds the time of creation.
type bound struct {
	param string
	dates dates
}

// means reports whether a reply declares that nothing is there.
func (n notFound) means(r *reply) bool {
	if n.status == 0 || r.status != n.status || r.value == nil {
		return false
	}
	if n.path == nil {
		return true
	}
	text, err := n.path.text(r.value)
	return err == nil && text == n.equals
}

// endpoints gives the look-ups that are there.
func (k *kind) endpoints() []*endpoint {
	var list []*endpoint
	for _, e := range []*endpoint{k.byID, k.byReference, k.byKey, k.byParent, k.list} {
		if e != nil {
			list = append(list, e)
		}
	}
	return list
}
