package sweep

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// refuse lets the database refuse an effect, until what it gives is called.
func (s *stand) refuse(id string) (storable func()) {
	s.Helper()
	s.exec(fmt.Sprintf(`ALTER TABLE reconciler.effects ADD CONSTRAINT refused CHECK (id <> '%s')`, id))
	return func() { s.exec(`ALTER TABLE reconciler.effects DROP CONSTRAINT refused`) }
}

// wantStored holds which effects are stored, by their ids.
func (s *stand) wantStored(id string, want bool) {
	s.Helper()
	got := len(s.rows(fmt.Sprintf(`SELECT id FROM reconciler.effects WHERE id = '%s'`, id))) == 1
	if got != want {
		s.Errorf("%s is stored: %t, want %t", id, got, want)
	}
}

// A list that broke off goes on where it was, but not past what could not be stored.
func TestAListThatBrokeOffDoesNotGoOnBehindWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for n := range 100 { // as many as fit on one page
		s.stranger(n)
	}
	s.pass(time.Minute)
	bad := s.listed(refund(1)) // the newest stands on the first page
	storable := s.refuse(bad.ID)
	s.pass(time.Hour)
	for range 2 {
		s.stripe.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Page: 2, Times: stripetest.Always})
		s.audit(s.since())
		s.stripe.ClearFaults()
		s.pass(time.Hour)
		r := s.audit(s.since())
		if found := s.findings(recon.FindMissing); len(found) != 0 || len(r.Unseen) != 1 || !strings.Contains(r.Unseen[0].Why, bad.ID) {
			t.Errorf("missing %+v, unseen %+v: want none, and the list for %s", found, r.Unseen, bad.ID)
		}
	}
	storable()
	r := s.audit(s.since())
	if found := s.findings(recon.FindMissing); len(found) != 0 || len(r.Unseen) != 0 {
		t.Errorf("when it can be stored: missing %+v, unseen %+v", found, r.Unseen)
	}
	s.wantStored(bad.ID, true)
}

// Night after night an audit begins where its lists are complete: before what cannot be stored,
// on whichever page it stands and however the nights before ended.
func TestNightsGoOnToTellOfWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	bad := s.listed(refund(1)) // the oldest stands on the last page
	s.pass(12 * time.Hour)
	for n := range 100 {
		s.stranger(n)
	}
	storable := s.refuse(bad.ID)
	for night := range 5 {
		s.pass(12 * time.Hour)
		s.stranger(1000 + night)
		s.pass(12 * time.Hour)
		r := s.audit(recon.Window{})
		if found := s.findings(recon.FindMissing); len(found) != 0 || len(r.Unseen) != 1 {
			t.Errorf("night %d: missing %+v, unseen %+v: want none, and the list", night, found, r.Unseen)
		}
	}
	storable()
	s.pass(24 * time.Hour)
	if r := s.audit(recon.Window{}); len(r.Unseen) != 0 {
		t.Errorf("when it can be stored: unseen %+v", r.Unseen)
	}
	s.wantStored(bad.ID, true)
	if found := s.findings(recon.FindMissing); len(found) != 0 {
		t.Errorf("when it can be stored: missing %+v", found)
	}
}

// Nor does the rest of a window that a person named begin the time that is complete.
func TestARestOfAWindowOfSomebodysOwnCompletesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.listed(refund(1))
	s.pass(24 * time.Hour)
	for n := range 101 {
		s.stranger(n)
	}
	s.pass(time.Hour)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Page: 2, Times: stripetest.Always})
	s.audit(recon.Window{From: s.now().Add(-2 * time.Hour)})
	s.stripe.ClearFaults()
	s.pass(time.Hour)
	read := 0
	s.sweep.after = func(step string) error {
		if step == "page" && read == 0 { // the rest is read, and nothing more
			read++
			s.stripe.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Times: stripetest.Always})
		}
		return nil
	}
	s.audit(recon.Window{})
	states, err := s.ledger.ListStates(t.Context(), testSource)
	if err != nil || read == 0 {
		t.Fatalf("%d pages were read: %v", read, err)
	}
	for _, st := range states {
		if !st.CompleteTo.IsZero() {
			t.Errorf("%s are complete to %s, and nobody has looked at the day before", st.Kind, st.CompleteTo)
		}
	}
}

// One list answers for many batches of a run. What it showed and could not be stored must not
// be hidden from the later ones: that would be taken for silence.
func TestWhatCannotBeStoredIsStillShownToLaterBatches(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"refused": true, "stored": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.sweep.batch = 1
			asks := refund(1) // for which all of the time is listed
			asks.charge = ""
			s.happen(asks, s.lose(asks))
			first, second := refund(2), refund(3)
			second.charge, second.amount = first.charge, first.amount
			for _, i := range []intent{first, second} {
				s.pass(time.Second)
				s.lose(i)
			}
			byHand := s.unmarked(first.charge, first.amount)
			if refused {
				s.refuse(byHand.ID)
			}
			s.pass(10 * time.Minute)
			s.run()
			s.wantState(asks, recon.Succeeded)
			s.wantStored(byHand.ID, !refused)
			for _, i := range []intent{first, second} {
				if story := s.wantState(i, recon.Unknown); story.Check.Absence.Looks != 0 {
					t.Errorf("%s was not found %d times, and the list shows what may be its effect", i.id, story.Check.Absence.Looks)
				}
			}
		})
	}
}

// An object that was read and could not be stored was not read.
func TestAReadingThatCannotBeStoredIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	made, other := s.happen(refund(1), "key-1"), s.happen(refund(2), "key-2")
	var list []ledger.Reading
	for _, id := range []string{made.ID, other.ID} {
		list = append(list, ledger.Reading{Source: testSource, Kind: "refund", Account: testAccount, Mode: "live", EffectID: id, From: monday})
	}
	if err := s.ledger.WantReadings(t.Context(), list, s.now()); err != nil {
		t.Fatal(err)
	}
	storable := s.refuse(made.ID)
	s.pass(time.Minute)
	s.run()
	if left := s.rows(`SELECT effect_id FROM reconciler.wanted`); len(left) != 1 || left[0] != made.ID {
		t.Errorf("%v are to be read, want %s", left, made.ID)
	}
	s.wantStored(other.ID, true)
	storable()
	s.pass(time.Hour)
	s.run()
	s.wantStored(made.ID, true)
	if left := s.rows(`SELECT effect_id FROM reconciler.wanted`); len(left) != 0 {
		t.Errorf("%v are to be read, want nothing", left)
	}
}

// Nor is an event done whose effect could not be stored.
func TestAnEventWhoseEffectCannotBeStoredIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i, other := refund(1), refund(2)
	made, beside := h.happen(i, h.lose(i)), h.happen(other, h.lose(other))
	storable := h.refuse(made.ID)
	h.post(h.event("evt_bad", "refund.created", refundObject(i, made.ID, "succeeded", h.now())))
	h.post(h.event("evt_good", "refund.created", refundObject(other, beside.ID, "succeeded", h.now())))
	h.take()
	if got := h.states(); got["evt_bad"] != inbox.Waiting || got["evt_good"] != inbox.Done {
		t.Errorf("%v, want the one to wait and the other done", got)
	}
	h.wantState(other, recon.Succeeded)
	storable()
	h.pass(time.Hour)
	h.take()
	if got := h.states(); got["evt_bad"] != inbox.Done {
		t.Errorf("when it can be stored: %v", got)
	}
	h.wantState(i, recon.Succeeded)
}

// What a provider writes may be what no row can hold. That is one effect's fault, and stops no
// other: neither where it is looked up whose it is nor where it is stored.
func TestWhatNoRowCanHoldStopsNoAudit(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*recon.Effect){
		"in its id":                func(e *recon.Effect) { e.ID += "\x00" },
		"in its reference":         func(e *recon.Effect) { e.Reference = "op\x00" },
		"in its key":               func(e *recon.Effect) { e.Key = "k\x00" },
		"in its natural reference": func(e *recon.Effect) { e.NaturalReference = "n\x00" },
		"in its parent":            func(e *recon.Effect) { e.Parent = "ch\x00" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			all := s.lists()
			bad, good := refundAt("re_bad", recon.Completed, monday), refundAt("re_good", recon.Completed, monday)
			spoil(&bad)
			all.effects = append(all.effects, bad, good)
			s.pass(3 * time.Hour)
			r := s.audit(s.since())
			if len(r.Unseen) != 1 || !strings.Contains(r.Unseen[0].Why, "re_bad") {
				t.Errorf("unseen %+v, want the list for the one", r.Unseen)
			}
			s.wantStored(good.ID, true)
		})
	}
}

// The same of a sweep, which asks whose the effects are that it was shown.
func TestWhatNoRowCanHoldStopsNoSweep(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	all := s.lists()
	i := refund(1)
	key := s.lose(i)
	mine := refundAt("re_mine", recon.Completed, monday)
	mine.Reference, mine.Parent, mine.Key, mine.Money.Minor = i.id, i.charge, key, i.amount
	bad := refundAt("re_bad\x00", recon.Completed, monday)
	all.effects = append(all.effects, mine, bad)
	s.sweep.Source = asked{all}
	s.pass(10 * time.Minute)
	s.run()
	s.wantState(i, recon.Succeeded)
}

// asked is a provider that answers every question by its whole list.
type asked struct{ *listed }

func (a asked) Ask(ctx context.Context, _ []sources.Question, now func() time.Time) (sources.Answer, error) {
	page, err := a.Page(ctx, sources.List{Kind: "refund", Account: testAccount, Mode: "live"}, recon.Window{From: monday.Add(-time.Hour), To: now()}, "", now)
	return sources.Answer{Effects: page.Effects, Looks: []recon.Look{page.Look}}, err
}
