package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// people of the stand; the daemon's connection names them.
func (s *stand) people(above map[string]int64) {
	s.Helper()
	err := s.ledger.ApplyPeople(s.Context(), ledger.People{
		People:       []ledger.Person{{Name: "ana", Role: "approver", Slack: "T1/U1"}, {Name: "bob", Role: "approver"}, {Name: "ana", Role: "approver", DBRole: "ana_db"}},
		ApproveAbove: above,
	}, s.now())
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stand) desk() *Desk {
	source := s.client()
	return &Desk{Ledger: s.ledger, Now: s.now, Source: func(recon.SourceName) (sources.Source, error) { return source, nil }}
}

// decide does what a person wants and demands the outcome.
func (s *stand) decide(person string, a ledger.PersonAction, want ledger.PersonOutcome) ledger.PersonAnswer {
	s.Helper()
	a.Person, a.Via = person, "slack"
	if a.Reason == "" {
		a.Reason = "looked at the dashboard"
	}
	got, err := s.desk().Do(s.Context(), a)
	if err != nil {
		s.Fatalf("%s %s: %v", person, a.Verb, err)
	}
	if got.Outcome != want {
		s.Fatalf("%s %s: %s: %s, want %s", person, a.Verb, got.Outcome, got.Text(a.Verb, time.UTC), want)
	}
	return got
}

// doubted is a lost refund that people are told of.
func (s *stand) doubted(i intent) ledger.FindingRow {
	s.Helper()
	s.lose(i)
	s.pass(20 * time.Minute)
	s.run()
	return s.open1(recon.FindUnresolved, i)
}

func (s *stand) open1(kind recon.FindingKind, i intent) ledger.FindingRow {
	s.Helper()
	for _, f := range s.findings(kind) {
		if f.Open() && (i.id == "" || len(f.Operations) == 1 && f.Operations[0] == recon.OperationID(i.id)) {
			return f
		}
	}
	s.Fatalf("no open %s on %s", kind, i.id)
	return ledger.FindingRow{}
}

func (s *stand) verify() {
	s.Helper()
	r, err := s.ledger.Verify(s.Context())
	if err != nil || len(r.Broken) > 0 {
		s.Fatalf("chains: %+v, %v", r, err)
	}
}

// unmarked makes a refund by hand: nothing at the provider names the operation.
func (s *stand) unmarked(charge string, amount int64) stripetest.Refund {
	s.Helper()
	r, err := s.stripe.AddRefund(stripetest.Refund{Account: testAccount, Mode: "live", Charge: charge, Amount: amount, Currency: "eur"})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func TestAnEffectThatAPersonNamesIsLookedUpAndCloses(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.people(nil)
	i := refund(1)
	f := s.doubted(i)
	r := s.unmarked(i.charge, i.amount)
	got := s.decide("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: r.ID, Version: f.Version}, ledger.PersonDone)
	if got.OperationState != recon.Succeeded || got.Effect != r.ID {
		t.Errorf("answer %+v", got)
	}
	story := s.wantState(i, recon.Succeeded)
	if story.Operation.EffectID != r.ID || len(story.Effects) != 1 {
		t.Errorf("the operation knows %s and owns %d effects", story.Operation.EffectID, len(story.Effects))
	}
	if len(story.Looks) == 0 || story.Looks[len(story.Looks)-1].Method != recon.ByID || story.Looks[len(story.Looks)-1].RequestID == "" {
		t.Errorf("the provider's answer is no evidence of it: %+v", story.Looks)
	}
	s.pass(48 * time.Hour)
	if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
		t.Fatal(err)
	}
	s.wantState(i, recon.Succeeded)
	s.verify()
}

func TestWhatTheProviderDoesNotConfirmNeedsASecondPerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(s *stand, i intent) (effect string)
		two     string
	}{
		"it is not there":    {func(*stand, intent) string { return "re_nowhere" }, recon.TwoForNotFound},
		"its amount differs": {func(s *stand, i intent) string { return s.unmarked(i.charge, i.amount-1).ID }, recon.TwoForDiffers},
		"the provider cannot be asked": {func(s *stand, i intent) string {
			r := s.unmarked(i.charge, i.amount)
			s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
			return r.ID
		}, recon.TwoForBlind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.people(nil)
			i := refund(1)
			f := s.doubted(i)
			effect := c.prepare(s, i)
			a := ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: effect}
			if got := s.decide("ana", a, ledger.PersonProposed); got.Two != c.two {
				t.Errorf("two people because %q, want %q", got.Two, c.two)
			}
			s.wantState(i, recon.Unknown)
			s.decide("ana", a, ledger.PersonProposed) // nobody is two people
			s.wantState(i, recon.Unknown)
			got := s.decide("bob", a, ledger.PersonDone)
			if got.ProposedBy != "ana" || got.OperationState != recon.Succeeded {
				t.Errorf("answer %+v", got)
			}
			s.stripe.ClearFaults()
			s.run()
			s.pass(time.Hour)
			s.run()
			s.wantState(i, recon.Succeeded)
			s.verify()
		})
	}
}

func TestADifferenceThatTwoPeopleTookIsNotRaisedAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.people(nil)
	i := refund(1)
	f := s.doubted(i)
	a := ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: s.unmarked(i.charge, i.amount-1).ID}
	s.decide("ana", a, ledger.PersonProposed)
	s.decide("bob", a, ledger.PersonDone)
	s.pass(48 * time.Hour)
	if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
		t.Fatal(err)
	}
	s.wantState(i, recon.Succeeded)
	for _, f := range s.findings() {
		if f.Open() {
			t.Errorf("%s is open: %s", f.Kind, f.Reason)
		}
	}
}

func TestB39_ASuggestionIsConfirmedByAPersonOnly(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.people(nil)
	i := refund(1)
	s.lose(i)
	r := s.unmarked(i.charge, i.amount) // same parent, amount and currency, and nothing that proves it
	for range 8 {
		s.pass(20 * time.Minute)
		s.run()
	}
	s.wantState(i, recon.Unknown)
	f := s.open1(recon.FindUnresolved, i)
	if !strings.Contains(f.Reason, r.ID) {
		t.Errorf("the suggestion is not told: %s", f.Reason)
	}
	s.decide("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Effect: r.ID, Operation: recon.OperationID(i.id)}, ledger.PersonDone)
	story := s.wantState(i, recon.Succeeded)
	if story.Operation.EffectID != r.ID {
		t.Errorf("it knows %q", story.Operation.EffectID)
	}
	s.verify()
}
