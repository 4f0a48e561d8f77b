package ledger_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// newDesk is a world on a clock that stands, with a list of people whom the daemon's
// connection names.
func newDesk(t *testing.T, above map[string]int64) *world {
	w := newWorld(t, pgtest.SimulatedTime(t0))
	w.apply(repeatable())
	w.people(above)
	return w
}

func (w *world) people(above map[string]int64) {
	w.Helper()
	err := w.led.ApplyPeople(w.Context(), ledger.People{
		People:       []ledger.Person{{Name: "ana", Role: "approver", Slack: "T1/U1"}, {Name: "bob", Role: "approver"}, {Name: "olga", Role: "operator"}},
		ApproveAbove: above,
	}, t0)
	if err != nil {
		w.Fatal(err)
	}
}

// raise stores a finding and gives it as it is listed.
func (w *world) raise(kind recon.FindingKind, about []recon.OperationID, effects ...recon.Effect) ledger.FindingRow {
	w.Helper()
	f := recon.Finding{Kind: kind, Certainty: recon.Proof, Source: source, Operations: about, Reason: "For the test.", Money: recon.Money{Minor: 4200, Currency: "EUR"}}
	for _, e := range effects {
		f.Effects = append(f.Effects, e.Ref())
	}
	w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{f}, Effects: effects})
	rows, err := w.led.Findings(w.Context(), ledger.FindingFilter{Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	i := slices.IndexFunc(rows, func(r ledger.FindingRow) bool { return r.Fingerprint() == f.Fingerprint() })
	if i < 0 {
		w.Fatal("the finding was not stored")
	}
	return rows[i]
}

// do does what somebody wants and demands that it is no error.
func (w *world) do(person string, a ledger.PersonAction) ledger.PersonAnswer {
	w.Helper()
	a.Person = person
	if a.Reason == "" {
		a.Reason = "looked at the dashboard"
	}
	answer, err := w.led.Person(w.Context(), a)
	if err != nil {
		w.Fatalf("%s %s: %v", person, a.Verb, err)
	}
	return answer
}

func (w *world) want(person string, a ledger.PersonAction, outcome ledger.PersonOutcome) ledger.PersonAnswer {
	w.Helper()
	answer := w.do(person, a)
	if answer.Outcome != outcome {
		w.Fatalf("%s %s: %s (%s), want %s", person, a.Verb, answer.Outcome, answer.Text(a.Verb, nil), outcome)
	}
	if outcome == ledger.PersonRefused && (answer.Reason == "" || answer.Next == "") {
		w.Errorf("%s %s is refused without reason or next step: %+v", person, a.Verb, answer)
	}
	if strings.Contains(command.ReplaceAllString(answer.Reason+answer.Next, ""), "--") {
		w.Errorf("%s %s is refused in words that mean nothing in Slack: %s", person, a.Verb, answer.Next)
	}
	return answer
}

// command is what people are told to type.
var command = regexp.MustCompile("`[^`]*`")

func (w *world) finding(id string) ledger.FindingStory {
	w.Helper()
	s, err := w.led.FindingStory(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// store puts effects on the shelf, as a look of a sweep would.
func (w *world) store(effects ...recon.Effect) {
	w.Helper()
	w.record(ledger.Batch{Now: t0, Effects: effects})
}

// own stores an effect and links it to its operation.
func (w *world) own(o recon.Operation, e recon.Effect) {
	w.Helper()
	w.store(e)
	w.exec(`UPDATE reconciler.effects SET owner = $1 WHERE id = $2`, string(o.ID), e.ID)
	w.exec(`INSERT INTO reconciler.matches (tenant, system, account, mode, effect_id, operation_id, basis, certainty, role, at)
		VALUES ('default', $1, $2, $3, $4, $5, 'reference', 'proof', 'main', $6)`, e.System, e.Account, e.Mode, e.ID, string(o.ID), t0)
}

func in(state recon.State) func(*recon.Operation, *recon.Check) {
	return func(o *recon.Operation, k *recon.Check) {
		o.State = state
		switch {
		case state == recon.InProgress:
			o.LeaseUntil = t0.Add(time.Minute)
		case !state.Open():
			o.ClosedAt = t0
		}
	}
}

func withKey(expires time.Duration) func(w *world, id string) {
	return func(w *world, id string) {
		w.exec(`UPDATE reconciler.operations SET key_expires_at = $1, request = '{}' WHERE operation_id = $2`, t0.Add(expires), id)
	}
}

// Every answer from every state: what it leads to, or that it is refused and changes
// nothing.
func TestWhatEachAnswerMakesOfEachState(t *testing.T) {
	t.Parallel()
	const no = recon.State("refused")
	for _, c := range []struct {
		verb   recon.Verb
		effect string // given
		to     map[recon.State]recon.State
	}{
		{recon.Happened, "re_op", map[recon.State]recon.State{
			recon.Pending: recon.Succeeded, recon.InProgress: no, recon.Unknown: recon.Succeeded, recon.ManualReview: recon.Succeeded,
			recon.Succeeded: recon.Succeeded, recon.Failed: recon.Succeeded}},
		{recon.Happened, "", map[recon.State]recon.State{recon.Unknown: no}},
		{recon.DidNotHappen, "", map[recon.State]recon.State{
			recon.Pending: recon.Failed, recon.InProgress: no, recon.Unknown: recon.Failed, recon.ManualReview: recon.Failed,
			recon.Succeeded: no, recon.Failed: recon.Failed}},
		{recon.Release, "", map[recon.State]recon.State{
			recon.Pending: recon.Pending, recon.InProgress: no, recon.Unknown: recon.Pending, recon.ManualReview: recon.Pending,
			recon.Succeeded: no, recon.Failed: no}},
		{recon.Accept, "", map[recon.State]recon.State{
			recon.Pending: recon.Pending, recon.InProgress: recon.InProgress, recon.Unknown: recon.Unknown,
			recon.ManualReview: recon.ManualReview, recon.Succeeded: recon.Succeeded, recon.Failed: recon.Failed}},
		{recon.Ignore, "", map[recon.State]recon.State{recon.Unknown: no}},
	} {
		for from, to := range c.to {
			t.Run(string(c.verb)+c.effect+" from "+string(from), func(t *testing.T) {
				t.Parallel()
				w := newDesk(t, nil)
				o := w.seed("op", in(from))
				withKey(12*time.Hour)(w, "op")
				e := refund(o, "re_op")
				e.Reference = ""
				w.store(e)
				f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
				before := w.story("op").Operation
				a := ledger.PersonAction{Finding: f.ID, Verb: c.verb, Effect: c.effect, Version: f.Version}
				if to == no {
					w.want("ana", a, ledger.PersonRefused)
					if after := w.story("op").Operation; after.Version != before.Version || w.finding(f.ID).State != recon.FindingOpen {
						t.Errorf("a refused answer changed something: %+v", after)
					}
					return
				}
				answer := w.want("ana", a, ledger.PersonDone)
				s := w.story("op")
				if s.Operation.State != to || answer.OperationState != to || answer.State != recon.FindingSettled {
					t.Errorf("it is %s (answered %+v), want %s", s.Operation.State, answer, to)
				}
				last := s.Journal[len(s.Journal)-1]
				for _, part := range []string{`"by": "ana"`, `"reason": "looked at the dashboard"`, `"from": "` + string(from) + `"`, `"to": "` + string(to) + `"`, f.ID} {
					if !strings.Contains(string(last.Body), part) {
						t.Errorf("the entry misses %s: %s", part, last.Body)
					}
				}
				if last.Kind != recon.EntryPerson {
					t.Errorf("the last entry is %s", last.Kind)
				}
				if to.Open() && s.Check.Next.IsZero() {
					t.Error("it is open and nobody looks again")
				}
				w.verifyChains()
			})
		}
	}
}

func TestReleaseIsRefusedForEveryoneWhereASecondEffectCouldFollow(t *testing.T) {
	t.Parallel()
	margin := recon.DefaultPolicy().KeyMargin.Std() + recon.DefaultPolicy().LeaseMax.Std()
	for name, c := range map[string]struct {
		prepare func(w *world, id string)
		refused string // empty: it is released
	}{
		"the key serves":                   {withKey(12 * time.Hour), ""},
		"one second before it is too near": {withKey(margin + time.Second), ""},
		"too near its end":                 {withKey(margin), "is over or too near"},
		"past its end":                     {withKey(-time.Second), "is over or too near"},
		"the payload is gone": {func(w *world, id string) {
			withKey(12*time.Hour)(w, id)
			w.exec(`UPDATE reconciler.operations SET request = NULL`)
		}, "its request is not stored"},
		"the provider stored an error": {func(w *world, id string) {
			withKey(12*time.Hour)(w, id)
			w.exec(`UPDATE reconciler.operations SET last_class = 'stored_error'`)
		}, "stored an error"},
		"its attempts are used up": {func(w *world, id string) {
			withKey(12*time.Hour)(w, id)
			w.exec(`UPDATE reconciler.operations SET attempts = 6`)
		}, "all 6 attempts"},
		"the provider keeps no keys": {func(w *world, id string) {
			p := repeatable()
			p.Repeat, p.KeyLifetime = recon.RepeatNever, 0
			w.apply(p)
			w.exec(`UPDATE reconciler.operations SET request = '{}'`)
		}, "keeps no keys"},
		"another one of the intent is open": {func(w *world, id string) {
			p := repeatable()
			p.OneOpen = true
			w.apply(p)
			withKey(12*time.Hour)(w, id)
			r := intent("op_2")
			r.Target, r.Amount, r.Currency = "order:op", 4200, "EUR"
			if a, err := w.led.OpenOperation(w.Context(), r); err != nil || a.Verdict != "new" {
				w.Fatalf("open another one: %+v, %v", a, err)
			}
		}, "operation op_2 of the same intent is open"},
		"it is at the provider": {func(w *world, id string) {
			withKey(12*time.Hour)(w, id)
			o := w.story(id).Operation
			w.own(o, refund(o, "re_1"))
		}, "re_1 is at the provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDesk(t, nil)
			o := w.seed("op", in(recon.ManualReview))
			c.prepare(w, "op")
			f := w.raise(recon.FindMissing, []recon.OperationID{o.ID})
			a := ledger.PersonAction{Finding: f.ID, Verb: recon.Release}
			if c.refused != "" {
				got := w.want("ana", a, ledger.PersonRefused)
				if again := w.want("bob", a, ledger.PersonRefused); !strings.Contains(got.Reason, c.refused) || again.Reason != got.Reason {
					t.Errorf("refused with %q and %q, want %q", got.Reason, again.Reason, c.refused)
				}
				return
			}
			w.want("ana", a, ledger.PersonDone)
			s := w.story("op").Operation
			if s.State != recon.Pending || !s.Released {
				t.Errorf("it is %s, released %v", s.State, s.Released)
			}
			claimed, err := w.led.Claim(t.Context(), ledger.ClaimRequest{OperationID: "op", Holder: "h"})
			if err != nil || !claimed.Claimed || claimed.Key != o.Key {
				t.Errorf("the released operation is not sent under its key: %+v, %v", claimed, err)
			}
			w.verifyChains()
		})
	}
}

func TestWhatEndedInAReleaseMayBeFoundAgain(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	withKey(12*time.Hour)(w, "op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Release}, ledger.PersonDone)
	if again := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID}); again.State != recon.FindingOpen || again.ID != f.ID {
		t.Errorf("lost once more after the release, and the finding is %s", again.State)
	}
	w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Accept}, ledger.PersonDone)
	if again := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID}); again.State != recon.FindingSettled {
		t.Errorf("what a person accepted came back: %s", again.State)
	}
}

func TestAcceptingADifferenceClosesWithTheLinkedEffect(t *testing.T) {
	t.Parallel()
	for status, want := range map[recon.EffectStatus]recon.State{
		recon.Completed: recon.Succeeded, recon.Reversed: recon.Succeeded, recon.InFlight: recon.ManualReview,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newDesk(t, nil)
			o := w.seed("op", in(recon.ManualReview))
			e := refund(o, "re_1")
			e.Status, e.Money.Minor = status, 4100
			w.own(o, e)
			f := w.raise(recon.FindMismatch, []recon.OperationID{o.ID}, e)
			w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Accept}, ledger.PersonDone)
			if got := w.story("op").Operation; got.State != want || want == recon.Succeeded && got.EffectID != "re_1" {
				t.Errorf("it is %s with %q, want %s", got.State, got.EffectID, want)
			}
			w.verifyChains()
		})
	}
}

func TestTheProvidersWordStandsAboveAPersons(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	e := refund(o, "re_1")
	w.own(o, e)
	f := w.raise(recon.FindMismatch, []recon.OperationID{o.ID}, e)
	got := w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonRefused)
	if !strings.Contains(got.Reason, "re_1 is at the provider and is completed") {
		t.Errorf("refused with %q", got.Reason)
	}
	failed := refund(o, "re_2")
	failed.Status = recon.EffectFailed
	w.store(failed)
	got = w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: "re_2"}, ledger.PersonRefused)
	if !strings.Contains(got.Reason, "re_2 is failed") {
		t.Errorf("refused with %q", got.Reason)
	}
	other := w.seed("other")
	foreign := refund(other, "re_3")
	w.own(other, foreign)
	got = w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: "re_3"}, ledger.PersonRefused)
	if !strings.Contains(got.Reason, "re_3 belongs to operation other") {
		t.Errorf("refused with %q", got.Reason)
	}
}

func TestAFindingThatChangedMeanwhileIsNotDecidedOn(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.Assign, Assignee: "bob", Version: f.Version}, ledger.PersonDone)
	for _, verb := range []recon.Verb{recon.DidNotHappen, recon.CheckNow} {
		got := w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: verb, Version: f.Version}, ledger.ChangedMeanwhile)
		if got.Version != f.Version+1 || !strings.Contains(got.Reason, "it is open") {
			t.Errorf("answered %+v", got)
		}
	}
	w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonDone)
	got := w.want("bob", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen, Version: f.Version + 1}, ledger.ChangedMeanwhile)
	if !strings.Contains(got.Reason, "ana settled it as did-not-happen") {
		t.Errorf("who comes second is told %q", got.Reason)
	}
}

func TestTheSameActionToldAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	a := ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen, Key: "msg 1, click 2, U1", Version: f.Version}
	first := w.want("ana", a, ledger.PersonDone)
	entries := len(w.story("op").Journal)
	again := w.want("ana", a, ledger.PersonDone)
	if !again.Repeated || first.Repeated || again.Version != first.Version || len(w.story("op").Journal) != entries {
		t.Errorf("told again: %+v after %+v, %d entries", again, first, len(w.story("op").Journal)-entries)
	}
}

// Fifty clicks at the same moment by two people: one of them settles it, and all others
// are told so.
func TestOfManyAtTheSameMomentOneSettles(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	var mu sync.Mutex // guards done
	done := 0
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			verb, who := recon.DidNotHappen, "ana"
			if i%2 == 1 {
				verb, who = recon.Accept, "bob"
			}
			got, err := w.led.Person(t.Context(), ledger.PersonAction{Finding: f.ID, Verb: verb, Reason: "r", Person: who, Version: f.Version})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got.Outcome == ledger.PersonDone {
				done++
			} else if got.Outcome != ledger.ChangedMeanwhile {
				t.Errorf("answered %+v", got)
			}
		})
	}
	all.Wait()
	if done != 1 {
		t.Errorf("%d were told that they settled it", done)
	}
	w.verifyChains()
}

func TestAProposalIsAboutWhatWasObserved(t *testing.T) {
	t.Parallel()
	w := newDesk(t, map[string]int64{"EUR": 4199})
	o := w.seed("op", in(recon.ManualReview))
	e := refund(o, "re_1")
	e.Money.Minor = 4100
	w.own(o, e)
	f := recon.Finding{Kind: recon.FindMismatch, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{o.ID},
		Effects: []recon.EffectRef{e.Ref()}, Money: o.Money, Reason: "It differs.", Observed: []recon.Difference{{Field: "amount", Ours: "42", Theirs: "41"}}}
	w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{f}})
	rows, err := w.led.Findings(t.Context(), ledger.FindingFilter{Operation: o.ID})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d findings, %v", len(rows), err)
	}
	a := ledger.PersonAction{Finding: rows[0].ID, Verb: recon.Accept}
	if got := w.want("ana", a, ledger.PersonProposed); got.Two != recon.TwoForAmount {
		t.Errorf("two people because %q", got.Two)
	}
	if p := w.finding(a.Finding).Proposal; p == nil || p.Person != "ana" || p.Verb != recon.Accept {
		t.Errorf("the proposal reads %+v", p)
	}
	f.Observed[0].Theirs = "40"
	w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{f}})
	if p := w.finding(a.Finding).Proposal; p != nil {
		t.Errorf("what ana proposed about other values still stands: %+v", p)
	}
	w.want("bob", a, ledger.PersonProposed)
	if got := w.want("bob", a, ledger.PersonProposed); !got.Repeated {
		t.Errorf("bob proposes the same again and is answered %+v", got)
	}
	if got := w.want("ana", a, ledger.PersonDone); got.ProposedBy != "bob" || got.OperationState != recon.Succeeded {
		t.Errorf("answered %+v", got)
	}
	s := w.finding(a.Finding)
	if len(s.Acts) != 3 || s.Acts[2].ProposedBy != "bob" || s.Ending != "bob and ana settled it as accept: looked at the dashboard" {
		t.Errorf("the story tells %+v, ending %q", s.Acts, s.Ending)
	}
}

func TestWhatIsAboveTheLimitTakesTwoAndTheLimitItselfOne(t *testing.T) {
	t.Parallel()
	for limit, outcome := range map[int64]ledger.PersonOutcome{4199: ledger.PersonProposed, 4200: ledger.PersonDone, 4201: ledger.PersonDone} {
		w := newDesk(t, map[string]int64{"EUR": limit, "USD": 1})
		o := w.seed("op", in(recon.ManualReview))
		f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
		w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, outcome)
	}
}

func TestAcknowledgementsExpireAndSnoozesWakeUp(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	one, two := w.seed("one"), w.seed("two")
	f, g := w.raise(recon.FindUnresolved, []recon.OperationID{one.ID}), w.raise(recon.FindUnresolved, []recon.OperationID{two.ID})
	ack := w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.Acknowledge}, ledger.PersonDone)
	if ack.Until == nil || !ack.Until.Equal(t0.Add(4*time.Hour)) || ack.State != recon.FindingAcknowledged {
		t.Errorf("acknowledged: %+v", ack)
	}
	w.want("olga", ledger.PersonAction{Finding: g.ID, Verb: recon.Snooze, Until: t0.Add(24 * time.Hour)}, ledger.PersonDone)
	for _, until := range []time.Duration{0, -time.Hour, 91 * 24 * time.Hour} {
		w.want("olga", ledger.PersonAction{Finding: g.ID, Verb: recon.Snooze, Until: t0.Add(until)}, ledger.PersonRefused)
	}
	for at, want := range map[time.Duration]int{4*time.Hour - time.Second: 0, 4 * time.Hour: 1} {
		if n, err := w.led.WakeFindings(t.Context(), t0.Add(at)); err != nil || at < 4*time.Hour && n != want {
			t.Errorf("%d woke up after %s, want %d: %v", n, at, want, err)
		}
	}
	if s := w.finding(f.ID); s.State != recon.FindingOpen || s.Version != ack.Version+1 || !s.AcknowledgedUntil.IsZero() {
		t.Errorf("after its time it is %s, version %d", s.State, s.Version)
	}
	if s := w.finding(g.ID); s.State != recon.FindingSnoozed || s.StateAt(t0.Add(24*time.Hour)) != recon.FindingOpen {
		t.Errorf("the snoozed one is %s", s.State)
	}
	// What somebody put off is news again once it is another thing.
	h := g.Finding
	h.Observed = []recon.Difference{{Field: "amount", Ours: "1", Theirs: "2"}}
	w.record(ledger.Batch{Now: t0, Findings: []recon.Finding{h}})
	if s := w.finding(g.ID); s.State != recon.FindingOpen || !s.SnoozedUntil.IsZero() {
		t.Errorf("another thing was observed, and it is %s", s.State)
	}
}

func TestCheckNowBringsTheNextLookForward(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op", func(_ *recon.Operation, k *recon.Check) { k.Next = t0.Add(24 * time.Hour) })
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.CheckNow}, ledger.PersonDone)
	if next := w.story("op").Check.Next; !next.Equal(t0) {
		t.Errorf("it is looked at next at %s", next)
	}
	orphan := recon.Effect{ID: "re_B1", Source: source, System: "stripe", Kind: "refund", Status: recon.Completed, CreatedAt: t0, Account: "acct_1", Mode: "live"}
	g := w.raise(recon.FindOrphan, nil, orphan)
	w.want("olga", ledger.PersonAction{Finding: g.ID, Verb: recon.CheckNow}, ledger.PersonRefused)
}

// When it comes back is told by who put it off, not by whoever did something else since.
func TestOnlyWhatPutsOffSaysUntilWhen(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.Snooze, Until: t0.Add(2 * time.Hour)}, ledger.PersonDone)
	for _, a := range []ledger.PersonAction{{Verb: recon.CheckNow}, {Verb: recon.Assign, Assignee: "ana"}} {
		a.Finding = f.ID
		if got := w.want("olga", a, ledger.PersonDone); got.Until != nil || got.State != recon.FindingSnoozed {
			t.Errorf("%s is answered: %s", a.Verb, got.Text(a.Verb, nil))
		}
	}
	for i, e := range w.story("op").Journal[1:] {
		if until := strings.Contains(string(e.Body), `"until"`); until != (i == 0) {
			t.Errorf("entry %d says: %s", i+1, e.Body)
		}
	}
}

func TestB02_ARefundMadeByHandIsAdoptedOrIgnoredAndNotFlaggedAgain(t *testing.T) {
	t.Parallel()
	byHand := recon.Effect{ID: "re_B1", Source: source, System: "stripe", Kind: "refund", Status: recon.Completed, Parent: "ch_B",
		Money: recon.Money{Minor: 1500, Currency: "EUR"}, CreatedAt: time.Date(2026, 3, 3, 9, 12, 0, 0, time.UTC), Account: "acct_1", Mode: "live", CreatedBy: "support"}
	t.Run("adopted by an operation made for it", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		f := w.raise(recon.FindOrphan, nil, byHand)
		got := w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Reason: "support did it"}, ledger.PersonDone)
		s := w.story(string(got.Made))
		o := s.Operation
		if o.State != recon.Succeeded || o.EffectID != "re_B1" || o.Money != byHand.Money || o.Parent != "ch_B" || o.Action != "refund.create" ||
			!o.CreatedAt.Equal(byHand.CreatedAt) || len(s.Effects) != 1 || s.Effects[0].Owner != string(o.ID) {
			t.Errorf("made %+v with %d effects", o, len(s.Effects))
		}
		if len(s.Journal) != 2 || s.Journal[0].Kind != recon.EntryOpened || s.Journal[1].Kind != recon.EntryPerson || s.Check.Next.IsZero() {
			t.Errorf("its story has %d entries, next check %s", len(s.Journal), s.Check.Next)
		}
		if again := w.raise(recon.FindOrphan, nil, byHand); again.State != recon.FindingSettled {
			t.Errorf("it is flagged again: %s", again.State)
		}
		w.verifyChains()
	})
	t.Run("adopted under the key that the feed told, though it was read just before", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		told, read := byHand, byHand
		told.Key = "k-of-somebody" // an object does not show it
		f := w.raise(recon.FindOrphan, nil, told)
		look := recon.Look{ID: "look-1", Source: source, Method: recon.ByID, Outcome: recon.Found, Kind: "refund", Account: "acct_1", Mode: "live",
			EffectID: read.ID, At: t0, Complete: true, Found: []recon.EffectIdentity{read.Identity()}}
		got := w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Effect: read.ID, Seen: &ledger.Seen{Look: look, Effect: &read}}, ledger.PersonDone)
		s := w.story(string(got.Made))
		if s.Operation.Key != told.Key || s.Effects[0].Key != told.Key {
			t.Errorf("the operation has the key %q and its effect %q: the same intent can be opened again", s.Operation.Key, s.Effects[0].Key)
		}
	})
	t.Run("adopted by the operation whose call was refused", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		o := w.seed("op", in(recon.Failed))
		e := byHand
		e.Money, e.Parent = o.Money, o.Parent
		f := w.raise(recon.FindOrphan, nil, e)
		w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Operation: o.ID}, ledger.PersonDone)
		if s := w.story("op"); s.Operation.State != recon.Succeeded || s.Operation.EffectID != "re_B1" || len(s.Effects) != 1 {
			t.Errorf("it is %s with %q", s.Operation.State, s.Operation.EffectID)
		}
		w.verifyChains()
	})
	t.Run("never by one of another place, or one that has an effect", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		test := w.seed("test", func(o *recon.Operation, _ *recon.Check) { o.Mode = "test" })
		has := w.seed("has")
		w.own(has, refund(has, "re_has"))
		f := w.raise(recon.FindOrphan, nil, byHand)
		for _, o := range []recon.OperationID{test.ID, has.ID, "nobody"} {
			w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Operation: o}, ledger.PersonRefused)
		}
	})
	t.Run("not while it is in flight, unless by one", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		e := byHand
		e.Status = recon.InFlight
		w.want("ana", ledger.PersonAction{Finding: w.raise(recon.FindOrphan, nil, e).ID, Verb: recon.Adopt}, ledger.PersonRefused)
	})
	t.Run("by one of another amount only if two say so", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		o := w.seed("op")
		f := w.raise(recon.FindOrphan, nil, byHand)
		a := ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Operation: o.ID}
		if got := w.want("ana", a, ledger.PersonProposed); got.Two != recon.TwoForDiffers {
			t.Errorf("two people because %q", got.Two)
		}
		w.want("bob", a, ledger.PersonDone)
	})
	t.Run("by two only if both say which action it was", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, map[string]int64{"EUR": 1000})
		goodwill := repeatable()
		goodwill.Action = "refund.goodwill"
		w.apply(repeatable(), goodwill)
		f := w.raise(recon.FindOrphan, nil, byHand)
		a := ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Action: "refund.create"}
		w.want("ana", a, ledger.PersonProposed)
		if p := w.finding(f.ID).Proposal; p == nil || p.Action != a.Action {
			t.Errorf("the proposal does not say which action: %+v", p)
		}
		if said := one[string](w, `SELECT details ->> 'action' FROM reconciler.person_actions WHERE person = 'ana'`); said != a.Action {
			t.Errorf("what ana did is kept for %q, want %q", said, a.Action)
		}
		other := a
		other.Action = goodwill.Action
		w.want("bob", other, ledger.PersonProposed) // that is another answer
		made := w.want("ana", other, ledger.PersonDone).Made
		if o := w.story(string(made)).Operation; o.Action != goodwill.Action {
			t.Errorf("made an operation of %s", o.Action)
		}
	})
	t.Run("by two, anew where a proposal of an earlier version waits", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, map[string]int64{"EUR": 1000})
		f := w.raise(recon.FindOrphan, nil, byHand)
		a := ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt}
		w.want("ana", a, ledger.PersonProposed)
		w.exec(`UPDATE reconciler.findings SET proposal = proposal - 'action'`) // it did not say of which action
		w.want("bob", a, ledger.PersonProposed)
		w.want("ana", a, ledger.PersonDone)
	})
	t.Run("ignored", func(t *testing.T) {
		t.Parallel()
		w := newDesk(t, nil)
		f := w.raise(recon.FindOrphan, nil, byHand)
		for _, verb := range []recon.Verb{recon.Happened, recon.DidNotHappen, recon.Release} {
			w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: verb}, ledger.PersonRefused)
		}
		w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Ignore}, ledger.PersonDone)
		if s := w.finding(f.ID); s.SettledAs != "ignore" || len(s.Effects) != 1 || s.Effects[0].Owner != "" {
			t.Errorf("it is settled as %q", s.SettledAs)
		}
		if again := w.raise(recon.FindOrphan, nil, byHand); again.State != recon.FindingSettled {
			t.Errorf("it is flagged again: %s", again.State)
		}
	})
}

func TestB95_AFindingThatEndedIsShownAsEndedAndDoesNotVanish(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.Snooze, Until: t0.Add(time.Hour)}, ledger.PersonDone)
	w.record(ledger.Batch{Now: t0.Add(time.Minute), Ends: []string{f.Fingerprint()}})
	s := w.finding(f.ID)
	if s.State != recon.FindingEnded || s.SettledBy != "" || s.Ending != "no longer so" || !s.SnoozedUntil.IsZero() || len(s.Acts) != 1 {
		t.Errorf("it is %s, settled by %q, ending %q, %d acts", s.State, s.SettledBy, s.Ending, len(s.Acts))
	}
	got := w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonRefused)
	if !strings.Contains(got.Reason, "it ended by itself at") {
		t.Errorf("who decides on it is told %q", got.Reason)
	}
}

func TestASourceThatCannotBeAskedIsNotSettledByAWord(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	f := w.raise(recon.FindBlind, nil)
	for _, verb := range recon.Answers {
		w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: verb}, ledger.PersonRefused)
	}
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.CheckNow}, ledger.PersonDone)
}

func TestTheDaemonsRoleIsEnoughForWhatPeopleDo(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	url := w.url + map[bool]string{true: "&", false: "?"}[strings.Contains(w.url, "?")] + "options=-c%20role%3Dreconciler_daemon"
	led, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(led.Close)
	w.led = led
	w.people(map[string]int64{"EUR": 1})
	w.want("olga", ledger.PersonAction{Finding: f.ID, Verb: recon.Acknowledge}, ledger.PersonDone)
	w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonProposed)
	if n, err := led.WakeFindings(t.Context(), t0.Add(24*time.Hour)); n != 1 || err != nil {
		t.Errorf("%d woke up: %v", n, err)
	}
	w.want("bob", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonDone)
	if s := w.finding(f.ID); len(s.Acts) != 3 || len(s.Stories) != 1 {
		t.Errorf("the story has %d acts and %d operations", len(s.Acts), len(s.Stories))
	}
	w.verifyChains()
}

func TestPeopleAreKnownByTheirAccounts(t *testing.T) {
	t.Parallel()
	w := newDesk(t, map[string]int64{"EUR": 1})
	p, err := w.led.People(t.Context())
	if err != nil || p.ApproveAbove["EUR"] != 1 || len(p.People) != 3 {
		t.Fatalf("people %+v, %v", p, err)
	}
	if got, ok := p.BySlack("T1/U1"); !ok || got.Name != "ana" || got.Role != "approver" {
		t.Errorf("T1/U1 is %+v", got)
	}
	for _, account := range []string{"", "T2/U1", "U1"} {
		if got, ok := p.BySlack(account); ok {
			t.Errorf("%q is %+v", account, got)
		}
	}
	version := one[string](w, `SELECT xmin::text FROM reconciler.people`)
	w.people(map[string]int64{"EUR": 1})
	if again := one[string](w, `SELECT xmin::text FROM reconciler.people`); again != version {
		t.Error("the same list was written again")
	}
}

func TestWhatPeopleDidIsNeverChanged(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	w.want("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.DidNotHappen}, ledger.PersonDone)
	for _, statement := range []string{`UPDATE reconciler.person_actions SET person = 'bob'`, `DELETE FROM reconciler.person_actions`, `TRUNCATE reconciler.person_actions`} {
		if _, err := w.db.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	var missing *ledger.NotFoundError
	if _, err := w.led.FindingStory(t.Context(), "nowhere"); !errors.As(err, &missing) {
		t.Errorf("a finding that is not there: %v", err)
	}
}

// Every message reads a story: what it costs does not grow with what is in it.
func TestAStoryIsReadInAFewRoundTrips(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	var ids []recon.OperationID
	for n := range 5 {
		ids = append(ids, w.seed(fmt.Sprint("op", n)).ID)
	}
	f := w.raise(recon.FindDuplicate, ids)
	var many []string
	for _, id := range ids {
		many = append(many, w.raise(recon.FindUnresolved, []recon.OperationID{id}).ID)
	}
	for _, tt := range []struct {
		what string
		most int64 // begin, the finding, two for all stories, rollback
		read func() (int, error)
	}{
		{"a finding of five operations", 5, func() (int, error) {
			s, err := w.led.FindingStory(t.Context(), f.ID)
			return len(s.Stories), err
		}},
		{"five findings for messages", 5, func() (int, error) {
			told, err := w.led.Told(t.Context(), many)
			return len(told), err
		}},
		{"one operation", 4, func() (int, error) {
			s, err := w.led.Story(t.Context(), ids[0])
			return len(s.Findings), err
		}},
	} {
		if n, err := tt.read(); err != nil || n == 0 {
			t.Fatalf("%s: %d, %v", tt.what, n, err)
		}
		before := w.calls.trips.Load()
		if _, err := tt.read(); err != nil {
			t.Fatal(err)
		}
		if n := w.calls.trips.Load() - before; n > tt.most {
			t.Errorf("%s takes %d round trips, more than %d", tt.what, n, tt.most)
		}
	}
}

// How long a retry stays safe is the same in a story, for a ladder and for many at once.
func TestARetryIsSafeAsLongWhereverItIsTold(t *testing.T) {
	t.Parallel()
	w := newDesk(t, nil)
	o := w.seed("op")
	withKey(12*time.Hour)(w, "op")
	f := w.raise(recon.FindUnresolved, []recon.OperationID{o.ID})
	safe := w.story("op").SafeRetryUntil()
	if margin := t0.Add(12 * time.Hour).Sub(safe); margin <= 0 {
		t.Fatalf("the margin is %s", margin)
	}
	alarms, err := w.led.Alarms(t.Context(), t0, 10)
	if err != nil || len(alarms) != 1 || !alarms[0].KeyExpiresAt.Equal(safe) {
		t.Errorf("%v; a ladder counts back from %+v, want %s", err, alarms, safe)
	}
	fold := recon.Fold{Source: f.Source, Kind: f.Kind, As: f.Kind, Reason: "together"}
	if n, err := w.led.Fold(t.Context(), fold, t0, t0.Add(-time.Hour), t0); n != 1 || err != nil {
		t.Fatalf("%d are folded: %v", n, err)
	}
	incidents, err := w.led.Incidents(t.Context(), t0, 10)
	if err != nil || len(incidents) != 1 || !incidents[0].KeyExpires.Equal(safe) || !incidents[0].Top[0].KeyExpires.Equal(safe) {
		t.Errorf("%v; an incident tells %+v, want %s", err, incidents, safe)
	}
}
