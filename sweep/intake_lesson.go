package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// lesson is what one event tells.
type lesson struct {
	of    inbox.Taken
	shown sources.Shown
	about []string // ids of objects and references that the event told of
}

// lacks says what of a lesson is not stored, of the effects that the database refuses.
func (l lesson) lacks(refused []recon.EffectIdentity) error {
	for _, e := range l.shown.Effects {
		if slices.Contains(refused, e.Identity()) {
			return fmt.Errorf("the ledger cannot store %s %s, which it shows", recon.Noun(e.Kind), e.ID)
		}
	}
	return nil
}

// aboutOf lists the ids of the objects that an event tells of, of those they hang under,
// and the references.
func aboutOf(s sources.Shown) []string {
	var ids []string
	for _, e := range s.Effects {
		ids = append(append(ids, e.ID, strings.TrimSpace(e.Reference), e.Parent), e.OtherParents...)
	}
	for _, h := range s.Hints {
		ids = append(ids, h.ID, strings.TrimSpace(h.Reference), h.Parent)
	}
	return ids
}

// takers are the kinds of effects that take back what effects of a kind did. They belong
// to no operation and bear on those that the effects above them belong to.
var takers = map[string][]string{
	"charge":         {"dispute", "refund"},
	"payment_intent": {"dispute", "refund"},
}

// makes reports whether an action of the source makes effects of a kind, or may: where one
// does not say which kind it makes.
func (i *Intake) makes(source recon.SourceName, kind string) bool {
	return i.Kinds == nil || slices.Contains(i.Kinds[source], kind) || slices.Contains(i.Kinds[source], "")
}

// ours keeps what is of a kind that some action makes, and what takes such effects back.
// Anything else would wait for an operation for ever.
func (i *Intake) ours(source recon.SourceName, s sources.Shown) sources.Shown {
	ours := func(kind string) bool {
		return i.makes(source, kind) || slices.ContainsFunc(i.Kinds[source], func(made string) bool { return slices.Contains(takers[made], kind) })
	}
	var out sources.Shown
	kept := map[recon.EffectIdentity]bool{}
	for _, e := range s.Effects {
		if ours(e.Kind) {
			out.Effects, kept[e.Identity()] = append(out.Effects, e), true
		}
	}
	for _, r := range s.Raw {
		if kept[r.Effect] {
			out.Raw = append(out.Raw, r)
		}
	}
	for _, h := range s.Hints {
		if ours(h.Kind) {
			out.Hints = append(out.Hints, h)
		}
	}
	return out
}

// read decodes events. Those that cannot be, or need not be, end here.
func (i *Intake) read(s IntakeSource, taken []inbox.Taken) (lessons []lesson, endings []inbox.Ending) {
	sheet := s.Sheet()
	for _, t := range taken {
		switch {
		case !sheet.Has(t.Event.Account, t.Event.Mode):
			endings = append(endings, inbox.Ending{Of: t, Foreign: true})
		case len(t.Event.Body) == 0:
			endings = append(endings, inbox.Ending{Of: t, Err: errors.New("its bytes were dropped or erased; nothing can be read from it")})
		default:
			shown, err := decode(s, t.Event)
			if err != nil {
				endings = append(endings, inbox.Ending{Of: t, Err: err})
				continue
			}
			if !t.Event.Signed {
				shown = distrusted(shown)
			}
			lessons = append(lessons, lesson{of: t, shown: i.ours(s.Name(), shown), about: aboutOf(shown)})
		}
	}
	return lessons, endings
}

// decode reads one event. A panic there is that event's fault.
func decode(s sources.Receiver, e recon.Event) (shown sources.Shown, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading it failed: %v", r)
		}
	}()
	return s.Decode(e)
}

// distrusted makes hints of what an event shows that nobody vouches for.
func distrusted(s sources.Shown) sources.Shown {
	hints := s.Hints
	for _, e := range s.Effects {
		hints = append(hints, sources.Hint{Kind: e.Kind, Account: e.Account, Mode: e.Mode, ID: e.ID, Parent: e.Parent, Reference: e.Reference, Key: e.Key})
	}
	return sources.Shown{Hints: hints}
}

// round is what some events show, each effect once.
type round struct {
	effects []recon.Effect
	raw     []sources.Raw
	looks   []recon.Look
}

// rounds keeps the tellings of one effect apart and in their order, so that the ledger
// weighs each against the one before.
func rounds(lessons []lesson) []*round {
	var all []*round
	last := map[recon.EffectIdentity]int{} // the first round after the effect's last one
	for _, l := range lessons {
		n := 0
		for _, e := range l.shown.Effects {
			n = max(n, last[e.Identity()])
		}
		if len(l.shown.Effects) == 0 {
			continue
		}
		if n == len(all) {
			all = append(all, &round{})
		}
		for _, e := range l.shown.Effects {
			last[e.Identity()] = n + 1
		}
		r := all[n]
		r.effects, r.raw = append(r.effects, l.shown.Effects...), append(r.raw, l.shown.Raw...)
		r.looks = append(r.looks, lookOf(l))
	}
	return all
}

// lookOf is the evidence of what an event showed. Its name is made of the event's, so
// that taking the same event in twice makes one.
func lookOf(l lesson) recon.Look {
	e := l.of.Event
	name := strings.Join([]string{e.System, e.Account, e.Mode, e.ID}, "\x00")
	look := recon.Look{
		ID: uuid.NewSHA1(lookSpace, []byte(name)).String(), Source: e.Source, Method: recon.ByEvent, Outcome: recon.Found,
		Kind: l.shown.Effects[0].Kind, Account: e.Account, Mode: e.Mode, At: l.of.ReceivedAt, Complete: true, RequestID: e.ID,
	}
	for _, shown := range l.shown.Effects {
		look.Found = append(look.Found, shown.Identity())
	}
	return look
}

// lookSpace is where the names of looks by events are unique.
var lookSpace = uuid.MustParse("5d3f8a52-6f0b-4f5e-9a3e-2a1f6c7d9b10")

// named gives what events tell of identities: of the effects that they show, and of those
// that they only hint at.
func named(lessons []lesson) []recon.Effect {
	var list []recon.Effect
	for _, l := range lessons {
		list = append(list, l.shown.Effects...)
		for _, h := range l.shown.Hints {
			list = append(list, recon.Effect{
				ID: h.ID, Source: l.of.Event.Source, System: l.of.Event.System, Account: h.Account, Mode: h.Mode, Reference: h.Reference, Key: h.Key,
			})
		}
	}
	return list
}
