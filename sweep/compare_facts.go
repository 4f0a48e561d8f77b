package sweep

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// compareFacts is what a comparison must know of all that both files hold, also of what it
// does not keep.
type compareFacts struct {
	places  map[briefPlace]bool           // of operations
	systems map[string]bool               // of which an effect was read
	shown   map[recon.EffectIdentity]bool // accounts and modes of which an effect was read
	made    map[placeKind]bool            // kinds of which one was read, by place and anywhere
	span    timeSpan
	kinds   kindCount
	// plain counts operations and effects that are plainly matched and were not kept, by
	// when they were made. Nil: everything was kept.
	plain func(recon.Window) (operations, effects int)
}

// briefPlace is where operations of an action are said to be.
type briefPlace struct {
	brief         brief
	account, mode string
}

// placeKind is a kind of effects in an account and mode of a system; without them, anywhere
// in it.
type placeKind struct{ system, account, mode, kind string }

// seeKind notes that an effect of a kind was read.
func seeKind(made map[placeKind]bool, at placeKind) {
	made[at], made[placeKind{system: at.system, kind: at.kind}] = true, true
}

// timeSpan is the first and the last instant that were seen.
type timeSpan struct{ first, last time.Time }

func (s *timeSpan) see(t time.Time) {
	if s.first.IsZero() || t.Before(s.first) {
		s.first = t
	}
	if t.After(s.last) {
		s.last = t
	}
}

// factsOf reads the facts off files that are kept whole.
func factsOf(in compareInput, format *files.Format) compareFacts {
	f := compareFacts{places: map[briefPlace]bool{}, systems: map[string]bool{}, shown: map[recon.EffectIdentity]bool{}, made: map[placeKind]bool{}, kinds: newKinds(in, format)}
	for _, op := range in.operations {
		f.places[briefPlace{brief{op.Source, op.Action}, op.Account, op.Mode}] = true
		f.span.see(op.CreatedAt)
	}
	for _, e := range in.effects {
		f.systems[e.System] = true
		f.shown[recon.EffectIdentity{System: e.System, Account: e.Account, Mode: e.Mode}] = true
		seeKind(f.made, placeKind{e.System, e.Account, e.Mode, e.Kind})
		f.span.see(e.CreatedAt)
	}
	return f
}
