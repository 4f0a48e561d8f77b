package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

func kinds(k ...recon.FindingKind) []recon.FindingKind { return k }

func TestDecideByEffects(t *testing.T) {
	t.Parallel()
	inFlight, failed, undone := status(recon.InFlight), status(recon.EffectFailed), status(recon.Reversed)
	strong := func(e *recon.Effect) { unmarked(e); e.NaturalReference = "R-7"; e.Parent = "" }
	natural := func(o *recon.Operation) { o.Reference = "R-7" }
	noKeys := func(s *recon.Sheet) { s.KeyHoldsOne, s.KeyLifetime = false, 0 }
	leased := func(o *recon.Operation) { o.State, o.LeaseUntil = recon.InProgress, late.Add(time.Minute) }
	leaseOver := func(o *recon.Operation) { o.State, o.LeaseUntil = recon.InProgress, late.Add(-time.Minute) }
	tests := []struct {
		name string
		b    *builder
		want wants
	}{
		{"one equal completed effect closes", lost().effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
		{"a unique natural reference closes", lost().op(natural).effects(refund("re_1", strong)), wants{"found", recon.Succeeded, "re_1", nil}},
		{"proof closes pending", lost().state(recon.Pending).effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
		{"proof closes under a live lease", lost().op(leased).effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
		{"a natural reference does not close under a live lease", lost().op(leased).op(natural).effects(refund("re_1", strong)), wants{"wait", recon.InProgress, "", nil}},
		{"proof closes what a person has", lost().state(recon.ManualReview).effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
		{"a natural reference does not close what a person has", lost().state(recon.ManualReview).op(natural).effects(refund("re_1", strong)), wants{"wait", recon.ManualReview, "", nil}},
		{"a succeeded one takes the id that it did not know", lost().state(recon.Succeeded).effects(refund("re_1")), wants{"found", recon.Succeeded, "re_1", nil}},
		{"a failed and a completed effect close as succeeded", lost().effects(refund("re_0", failed), refund("re_1", after(time.Minute))), wants{"found", recon.Succeeded, "re_1", nil}},

		{"an effect in flight keeps it open with the id", lost().effects(refund("re_1", inFlight)), wants{"in_flight", recon.Unknown, "re_1", nil}},
		{"an effect in flight makes pending unknown", lost().state(recon.Pending).effects(refund("re_1", inFlight)), wants{"in_flight", recon.Unknown, "re_1", nil}},
		{"an effect in flight leaves a live lease alone", lost().op(leased).effects(refund("re_1", inFlight)), wants{"wait", recon.InProgress, "", nil}},
		{"an effect in flight for too long is told", lost().effects(refund("re_1", inFlight, after(-15*24*time.Hour))), wants{"in_flight", recon.Unknown, "re_1", kinds(recon.FindUnresolved)}},

		{"another amount goes to a person", lost().effects(refund("re_1", amount(42))), wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)}},
		{"another amount re-opens a succeeded one", lost().state(recon.Succeeded).effects(refund("re_1", amount(42))), wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)}},
		{"another amount re-opens a failed one", lost().state(recon.Failed).effects(refund("re_1", amount(42))), wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)}},
		{"another amount leaves a live lease alone", lost().op(leased).effects(refund("re_1", amount(42))), wants{"wait", recon.InProgress, "", nil}},
		{"another amount after a lease goes by way of unknown", lost().op(leaseOver).effects(refund("re_1", amount(42))), wants{"mismatch", recon.Unknown, "", kinds(recon.FindMismatch)}},

		{"two equal effects keep the earlier", lost().effects(refund("re_2", after(9*time.Second)), refund("re_1")), wants{"duplicate", recon.Succeeded, "re_1", kinds(recon.FindDuplicate)}},
		{"an equal and a differing effect keep the equal", lost().effects(refund("re_0", amount(1), after(0)), refund("re_1")), wants{"duplicate", recon.Succeeded, "re_1", kinds(recon.FindDuplicate)}},
		{"completed goes before in flight", lost().effects(refund("re_0", inFlight, after(0)), refund("re_1")), wants{"duplicate", recon.Succeeded, "re_1", kinds(recon.FindDuplicate)}},
		{"two in flight stay unknown", lost().effects(refund("re_1", inFlight), refund("re_2", inFlight)), wants{"duplicate", recon.Unknown, "re_1", kinds(recon.FindDuplicate)}},

		{"two in flight leave a live lease alone", lost().op(leased).effects(refund("re_1", inFlight), refund("re_2", inFlight)), wants{"wait", recon.InProgress, "", nil}},
		{"two by a natural reference are told to the person who has it", lost().state(recon.ManualReview).op(natural).effects(refund("re_1", strong), refund("re_2", strong)), wants{"duplicate", recon.ManualReview, "re_1", kinds(recon.FindDuplicate)}},

		{"a failed effect under its key closes as failed", lost().effects(refund("re_1", failed)), wants{"failed_effects", recon.Failed, "re_1", nil}},
		{"a failed effect without keys waits for a complete look", lost().sheet(noKeys).effects(refund("re_1", failed)), wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)}},
		{"a failed effect without keys closes by a complete look", lost().sheet(noKeys).effects(refund("re_1", failed)).looks(listed(late, refund("re_1"))), wants{"failed_effects", recon.Failed, "re_1", nil}},
		{"a failed effect without keys closes by a complete look for our reference",
			lost().sheet(noKeys).sheet(byReference).effects(refund("re_1", failed)).looks(referred(late, refund("re_1"))), wants{"failed_effects", recon.Failed, "re_1", nil}},
		{"a failed effect closes by nothing that found others too",
			lost().sheet(noKeys).sheet(byReference).effects(refund("re_1", failed)).looks(referred(late, refund("re_1"), refund("re_9"))), wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)}},
		{"a failed effect closes nothing that a person has", lost().state(recon.ManualReview).effects(refund("re_1", failed)), wants{"wait", recon.ManualReview, "", nil}},
		{"a failed effect leaves failed alone", lost().state(recon.Failed).effects(refund("re_1", failed)), wants{"wait", recon.Failed, "", nil}},

		{"a reversed effect re-opens", lost().state(recon.Succeeded).effects(refund("re_1", undone)), wants{"reversed", recon.ManualReview, "", kinds(recon.FindReversed)}},
		{"a late failure re-opens", lost().state(recon.Succeeded).effects(refund("re_1", failed)), wants{"reversed", recon.ManualReview, "", kinds(recon.FindReversed)}},
		{"an unknown one whose effect was reversed goes to a person", lost().effects(refund("re_1", undone)), wants{"reversed", recon.ManualReview, "", kinds(recon.FindReversed)}},
		{"a failed one whose effect was reversed stays and is told", lost().state(recon.Failed).effects(refund("re_1", undone)), wants{"reversed", recon.Failed, "", kinds(recon.FindReversed)}},
		{"an old failed effect beside one that was not read re-opens nothing",
			lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "re_2" }).effects(refund("re_1", failed)), wants{"wait", recon.Succeeded, "", nil}},

		{"a completed effect of a failed one corrects it", lost().state(recon.Failed).effects(refund("re_1")), wants{"conflict", recon.Succeeded, "re_1", kinds(recon.FindConflict)}},
		{"an effect in flight of a failed one re-opens it", lost().state(recon.Failed).effects(refund("re_1", inFlight)), wants{"conflict", recon.Unknown, "re_1", kinds(recon.FindConflict)}},
		{"two effects of a failed one are told twice", lost().state(recon.Failed).effects(refund("re_1"), refund("re_2")), wants{"conflict", recon.Succeeded, "re_1", kinds(recon.FindConflict, recon.FindDuplicate)}},
		{"a natural reference corrects no failed one", lost().state(recon.Failed).op(natural).effects(refund("re_1", strong)), wants{"refused", recon.Failed, "", nil}},

		{"a lease that is over is unknown", lost().op(leaseOver), wants{"lease_over", recon.Unknown, "", nil}},
		{"a lease that ends now is over", lost().op(leased).op(func(o *recon.Operation) { o.LeaseUntil = late }), wants{"lease_over", recon.Unknown, "", nil}},
		{"an imported one in progress without a lease is unknown", lost().op(leaseOver).op(func(o *recon.Operation) { o.LeaseUntil = time.Time{} }), wants{"lease_over", recon.Unknown, "", nil}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			demand(t, tt.b.decide(late), tt.want)
		})
	}
}

// Matchers make a natural reference of a failed operation a hint. One that was linked
// before it failed, and is told as strong, corrects it no more than a hint does.
func TestANaturalReferenceThatWasLinkedBeforeCorrectsNoFailedOne(t *testing.T) {
	t.Parallel()
	c := lost().state(recon.Failed).c
	e := refund("re_1", unmarked)
	c.Effects = []recon.Effect{e}
	c.Matches = []recon.Match{{Operation: "op_1", Effect: e.Identity(), Basis: recon.OnNaturalReference, Certainty: recon.StrongSign}}
	demand(t, rules.Decide(c, late), wants{rule: "refused", to: recon.Failed})
}

func TestB01_LostAnswerOfAFailedOperationIsCorrected(t *testing.T) {
	t.Parallel()
	d := lost().state(recon.Failed).effects(refund("re_A1")).looks(listed(late, refund("re_A1"))).decide(late)
	demand(t, d, wants{"conflict", recon.Succeeded, "re_A1", kinds(recon.FindConflict)})
	if len(d.LookIDs) != 1 || len(d.Links) != 1 || d.Links[0].Role != recon.Main || d.Links[0].Basis != recon.OnReference {
		t.Errorf("evidence: looks %v, links %+v", d.LookIDs, d.Links)
	}
}

// knowing is an operation that succeeded with re_known, as its sender said, and what was seen
// of it since.
func knowing(effects ...recon.Effect) *builder {
	b := lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "re_known" }).effects(effects...)
	b.c.Looks = nil
	return b
}

// told is an event of an effect.
func told(e recon.Effect) recon.Look {
	l := listed(late, e)
	l.ID, l.Method, l.Parent = "event", recon.ByEvent, ""
	return l
}

// askedByID is a look for one effect by its id.
func askedByID(id string, at time.Time, found ...recon.Effect) recon.Look {
	l := listed(at, found...)
	l.ID, l.Method, l.Parent, l.EffectID = "by-id-"+id, recon.ByID, "", id
	return l
}

func blindOf(l recon.Look) recon.Look {
	l.ID += "-blind"
	l.Outcome, l.Complete, l.Fault, l.Found = recon.Blind, false, "unavailable", nil
	return l
}

// fileOnly is a source of which only export files tell, fileLook what it says when it is asked.
func fileOnly(s *recon.Sheet) {
	s.Webhooks, s.Abilities = false, []recon.Ability{{Method: recon.ByFile, Consistency: recon.Strong, Lag: hours(24)}}
}

func fileLook() recon.Look {
	l := blindAt(late)
	l.Method, l.Parent, l.Fault = recon.ByFile, "", "unsupported"
	return l
}

// without leaves methods out of the sheet.
func without(methods ...recon.Method) func(*recon.Sheet) {
	return func(s *recon.Sheet) {
		s.Abilities = slices.DeleteFunc(slices.Clone(s.Abilities), func(a recon.Ability) bool { return slices.Contains(methods, a.Method) })
	}
}

// An event of a second effect may come before anybody saw the first one, which the sender named.
func TestAnotherEffectThanTheOneKnownWaitsUntilThatIsSought(t *testing.T) {
	t.Parallel()
	other := refund("re_other")
	otherKey := refund("re_other", func(e *recon.Effect) { e.Key = "k-second" })
	recent := listed(late, other)
	recent.Parent, recent.Window = "", recon.Window{From: late.Add(-2 * time.Minute), To: late}
	brokenOff := listed(late, other)
	brokenOff.Complete = false
	elsewhere := blindOf(askedByID("re_known", late))
	elsewhere.Account = "acct_2"
	shut := blindAt(late) // told once for all that its account was to be asked
	shut.Account, shut.Parent, shut.Window = "acct_2", "", recon.Window{From: sent.Add(-5 * time.Minute), To: late}
	early := listed(late, other)
	early.Parent, early.Window = "", recon.Window{From: sent.Add(-time.Hour), To: sent}
	nowhere := func(o *recon.Operation) { o.Account = "" }
	otherKinds := func(s *recon.Sheet) {
		s.Abilities = []recon.Ability{{Method: recon.ByList, Consistency: recon.Strong, Kinds: []string{"payout"}}}
	}
	waits := wants{rule: "wait", to: recon.Succeeded}
	mismatch := wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)}
	for name, tt := range map[string]struct {
		b    *builder
		want wants
	}{
		"an event asks nobody":                            {knowing(other).looks(told(other)), waits},
		"nor does one of an effect under another key":     {knowing(otherKey).looks(told(otherKey)), waits},
		"nor does one of an effect of another amount":     {knowing(refund("re_other", amount(42))).looks(told(other)), waits},
		"a source that is away has not answered":          {knowing(other).looks(told(other), blindAt(late)), waits},
		"a list of the last minutes shows none older":     {knowing(other).looks(recent), waits},
		"nor does it where the id could not be asked for": {knowing(other).looks(recent, blindOf(askedByID("re_known", late))), waits},
		"a list that broke off may show it further on":    {knowing(other).looks(brokenOff), waits},
		"another id that is read is another effect":       {knowing(other).looks(askedByID("re_other", late, other)), waits},
		"a filter on our reference reads no ids":          {knowing(other).sheet(byReference).looks(referred(late, other)), waits},
		"one account of two is not both":                  {knowing(other).op(nowhere).looks(askedByID("re_known", late), elsewhere), waits},
		"nor is one in which nothing could be asked":      {knowing(other).op(nowhere).looks(askedByID("re_known", late), shut), waits},
		"without ids, too, a list may go on further":      {knowing(other).sheet(without(recon.ByID)).looks(brokenOff), waits},
		"or end before the last that was possible":        {knowing(other).sheet(without(recon.ByID)).looks(early), waits},
		"within the lag it may not be shown yet":          {knowing(other).looks(askedByID("re_known", sent.Add(20*time.Second))), waits},

		"its id was asked for":                        {knowing(other).looks(told(other), askedByID("re_known", late)), mismatch},
		"in each, though a list of one broke off":     {knowing(other).op(nowhere).looks(askedByID("re_known", late), blindAt(late)), mismatch},
		"in each account":                             {knowing(other).op(nowhere).looks(askedByID("re_known", late)), mismatch},
		"a complete list of its parent lacks it":      {knowing(other).looks(listed(late, other)), mismatch},
		"what differs besides stays a mismatch":       {knowing(otherKey).looks(askedByID("re_known", late)), mismatch},
		"without ids our reference answers for it":    {knowing(other).sheet(without(recon.ByID)).sheet(byReference).looks(referred(late, other)), mismatch},
		"without ids or account any answer does":      {knowing(other).op(nowhere).sheet(without(recon.ByID)).looks(recent), mismatch},
		"nobody can be asked":                         {knowing(other).sheet(func(s *recon.Sheet) { s.Abilities = nil }).looks(told(other)), mismatch},
		"nor where only files tell":                   {knowing(other).sheet(fileOnly).looks(fileLook()), mismatch},
		"nor where it can be asked for other kinds":   {knowing(other).sheet(otherKinds).looks(told(other)), mismatch},
		"it is there too":                             {knowing(other, refund("re_known")).looks(told(other), askedByID("re_known", late, refund("re_known"))), wants{"duplicate", recon.Succeeded, "", kinds(recon.FindDuplicate)}},
		"it is there, and the other under other keys": {knowing(otherKey, refund("re_known")).looks(told(otherKey)), wants{"duplicate", recon.Succeeded, "", kinds(recon.FindDuplicate)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.b.decide(late)
			demand(t, d, tt.want)
			if soon := late.Add(time.Minute); tt.want.rule == "wait" && d.Check.Next.After(soon) {
				t.Errorf("the one that is known is sought at %s, and it is %s", d.Check.Next, late)
			}
		})
	}
}

// What was released for a repeat is not sent again once something of it is seen, whatever that
// turns out to be.
func TestWhatWasReleasedMayNotBeClaimedOnceAnotherEffectIsSeen(t *testing.T) {
	t.Parallel()
	other := refund("re_other")
	b := knowing(other).state(recon.Pending).op(func(o *recon.Operation) { o.Released, o.UnknownSince = true, late }).looks(told(other))
	demand(t, b.decide(late), wants{"mismatch", recon.Unknown, "", nil})
	demand(t, b.looks(askedByID("re_known", late)).decide(late), wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)})
}

// Where another effect is seen, the one that is known is asked for again within minutes.
func TestNothingIsGivenUpBeforeTheKnownEffectIsSought(t *testing.T) {
	t.Parallel()
	old, other := sent.Add(10*24*time.Hour), refund("re_other")
	recent := listed(old, other)
	recent.Parent, recent.Window = "", recon.Window{From: old.Add(-2 * time.Minute), To: old}
	b := knowing(other).state(recon.Unknown).looks(recent, blindOf(askedByID("re_known", old)))
	d := b.decide(old)
	demand(t, d, wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)})
	if d.Check.Next.After(old.Add(time.Minute)) {
		t.Errorf("it is sought at %s, and it is %s", d.Check.Next, old)
	}
}

// A source may answer, and never for the one effect: its key may not read single objects, or
// nothing was sent that could be asked for. One that is away says nothing, however often.
func TestWhatIsSeenIsToldAtLastWhereTheKnownIsNeverAnsweredFor(t *testing.T) {
	t.Parallel()
	other := refund("re_other")
	unaskable := blindAt(late)
	unaskable.Fault = "unsupported"
	faulty := func(fault string) recon.Look {
		l := blindOf(askedByID("re_known", late))
		l.Fault = fault
		return l
	}
	for name, tt := range map[string]struct {
		look recon.Look
		told bool
	}{
		"its id cannot be read":              {blindOf(askedByID("re_known", late)), true},
		"nothing can be asked for":           {unaskable, true},
		"what it shows of it cannot be read": {faulty("malformed"), true},
		"it refuses the id as none":          {faulty("own_bug"), true},
		"the source is never there":          {blindAt(late), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, now := knowing(other), late
			seen := listed(late, other)
			var last recon.Decision
			for now.Before(late.Add(6*time.Hour)) && last.To != recon.ManualReview {
				b.c.Looks = []recon.Look{tt.look}
				if name == "its id cannot be read" {
					b.looks(seen)
				}
				last = b.decide(now)
				b.c.Check, now = last.Check, last.Check.Next
			}
			if got := last.To == recon.ManualReview; got != tt.told {
				t.Fatalf("told %v, want %v: %s", got, tt.told, last.Reason)
			}
			if !tt.told {
				return
			}
			if passed := now.Sub(late); passed < 3*time.Hour {
				t.Errorf("told %s after the first try", passed)
			}
			// What people know of is neither taken back nor asked for every few minutes.
			b.state(recon.ManualReview).open(last.Findings...).looks(seen)
			if d := b.decide(now); len(d.Ends) > 0 || d.Check.Next.Before(now.Add(24*time.Hour)) {
				t.Errorf("ends %v, next look %s after", d.Ends, d.Check.Next.Sub(now))
			}
		})
	}
}

// What a list showed before it broke off was seen by it.
func TestAnEffectThatAListShowedBeforeItBrokeOffNamesTheList(t *testing.T) {
	t.Parallel()
	broken := blindAt(late)
	broken.Found = []recon.EffectIdentity{refund("re_A1").Identity()}
	other := blindAt(late.Add(time.Second))
	d := lost().effects(refund("re_A1")).looks(broken, other).decide(late)
	demand(t, d, wants{"found", recon.Succeeded, "re_A1", nil})
	if !slices.Equal(d.LookIDs, []string{broken.ID}) {
		t.Errorf("evidence %v, want %s alone", d.LookIDs, broken.ID)
	}
}

func TestB12_TheFirstLookWaitsAndTheSecondCloses(t *testing.T) {
	t.Parallel()
	first := sent.Add(5 * time.Second)
	b := lost().op(func(o *recon.Operation) { o.UnknownSince = sent })
	d := b.looks(listed(first)).decide(first)
	demand(t, d, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, d, first)
	if d.Check.Absence.Looks != 0 {
		t.Errorf("a look inside the lag window counted: %+v", d.Check.Absence)
	}

	blind := lost().op(func(o *recon.Operation) { o.UnknownSince = sent }).looks(blindAt(first)).decide(first)
	demand(t, blind, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, blind, first)
	if !blind.Blind || blind.Check.Blinds != 1 || blind.Check.Looks != 0 {
		t.Errorf("a failed look-up is not counted as blind: %+v", blind)
	}

	second := sent.Add(2 * time.Minute)
	d = lost().effects(refund("re_J1")).looks(listed(second, refund("re_J1"))).decide(second)
	demand(t, d, wants{"found", recon.Succeeded, "re_J1", nil})
}

func TestB13_ClosingStoresTheEffectAndHowItWasFound(t *testing.T) {
	t.Parallel()
	for basis, e := range map[recon.Basis]recon.Effect{
		recon.OnReference: refund("re_K1"),
		recon.OnKey:       refund("re_K1", unmarked, func(e *recon.Effect) { e.Key = "k-1" }),
	} {
		d := lost().effects(e).decide(late)
		demand(t, d, wants{"found", recon.Succeeded, "re_K1", nil})
		if len(d.Links) != 1 || d.Links[0].Basis != basis {
			t.Errorf("links %+v, want basis %s", d.Links, basis)
		}
	}
}

func TestB18_AnEmptySearchProvesNothing(t *testing.T) {
	t.Parallel()
	b := lost().policy(func(p *recon.Policy) { p.Absence = recon.AbsencePolicy{Looks: 1}; p.UnresolvedAfter = hours(2) })
	search := listed(late)
	search.Method, search.Parent, search.Reference = recon.BySearch, "", "op_1"
	d := b.looks(search).decide(late)
	demand(t, d, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, d, late)
	if d.Check.Absence.Looks != 0 {
		t.Errorf("an empty search counted: %+v", d.Check.Absence)
	}
	demand(t, b.effects(refund("re_N1")).looks(listed(late, refund("re_N1"))).decide(late), wants{"found", recon.Succeeded, "re_N1", nil})
}

func TestB27_TestModeObjectChangesNothing(t *testing.T) {
	t.Parallel()
	test := refund("re_P1", func(e *recon.Effect) { e.Mode = "test" })
	d := lost().policy(func(p *recon.Policy) { p.UnresolvedAfter = hours(2) }).effects(test).decide(sent.Add(-time.Second))
	demand(t, d, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, d, sent.Add(-time.Second))
}

func TestB39_ASuggestionClosesNothingAndStopsAbsence(t *testing.T) {
	t.Parallel()
	b := lost().policy(func(p *recon.Policy) { p.Absence = recon.AbsencePolicy{Looks: 1}; p.UnresolvedAfter = hours(2) })
	d := b.effects(refund("re_1", unmarked)).looks(listed(late, refund("re_1"))).decide(late)
	demand(t, d, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, d, late)
	if d.Check.Absence.Looks != 0 {
		t.Error("a look counted as absent although a candidate is there")
	}
}

func TestB41_AnotherAmountUnderTheSameKeyIsNeverAdopted(t *testing.T) {
	t.Parallel()
	first := refund("re_1", unmarked, amount(1000), func(e *recon.Effect) { e.Key = "k-1" })
	d := lost().state(recon.Failed).effects(first).decide(late)
	demand(t, d, wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)})
	d = lost().effects(first).decide(late)
	demand(t, d, wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)})
}

func TestB42_KeyInUseIsUnknownUntilTheEffectIsSeen(t *testing.T) {
	t.Parallel()
	now := sent.Add(31 * time.Second)
	inUse := func(o *recon.Operation) { o.Attempts, o.UnknownSince, o.LeaseUntil = 2, now, now.Add(time.Minute) }
	d := lost().op(inUse).looks(listed(now)).decide(now)
	demand(t, d, wants{rule: "wait", to: recon.Unknown})
	undisturbed(t, d, now)
	d = lost().op(inUse).effects(refund("re_R1", after(32*time.Second))).decide(now.Add(3 * time.Second))
	demand(t, d, wants{"found", recon.Succeeded, "re_R1", nil})
}

func TestB45_NeverSentIsToldAsSuch(t *testing.T) {
	t.Parallel()
	unsent := func() *builder {
		return lost().state(recon.Pending).op(func(o *recon.Operation) {
			o.SentAt, o.UnknownSince, o.LeaseUntil, o.KeyExpiresAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			o.Attempts, o.InDoubt, o.LastClass = 0, false, ""
		})
	}
	fail := func(p *recon.Policy) { p.OnNeverSent = recon.NeverSentFail }
	now := sent.Add(72 * time.Hour)
	t.Run("it stays and a person is told that no call was made", func(t *testing.T) {
		t.Parallel()
		d := unsent().looks(listed(now)).decide(now)
		demand(t, d, wants{"never_sent", recon.Pending, "", kinds(recon.FindNeverSent)})
		if want := "The refund of 42.00 EUR for order:1 was recorded 3 d ago and no call was made."; d.Findings[0].Reason != want {
			t.Errorf("reason %q, want %q", d.Findings[0].Reason, want)
		}
	})
	t.Run("by policy it fails after the source was asked", func(t *testing.T) {
		t.Parallel()
		d := unsent().policy(fail).looks(listed(now)).decide(now)
		demand(t, d, wants{"never_sent", recon.Failed, "", nil})
		if len(d.LookIDs) != 1 || d.ErrorCode != "never_sent" {
			t.Errorf("evidence %v, code %q", d.LookIDs, d.ErrorCode)
		}
	})
	t.Run("a blind look fails nothing and tells nothing", func(t *testing.T) {
		t.Parallel()
		d := unsent().policy(fail).looks(blindAt(now)).decide(now)
		demand(t, d, wants{rule: "wait", to: recon.Pending})
		undisturbed(t, d, now)
	})
	t.Run("a young one waits", func(t *testing.T) {
		t.Parallel()
		now := sent.Add(10 * time.Minute)
		d := unsent().policy(fail).looks(listed(now)).decide(now)
		demand(t, d, wants{rule: "wait", to: recon.Pending})
		undisturbed(t, d, now)
	})
	t.Run("a candidate keeps it from failing", func(t *testing.T) {
		t.Parallel()
		d := unsent().policy(fail).effects(refund("re_9", unmarked)).looks(listed(now, refund("re_9"))).decide(now)
		demand(t, d, wants{"never_sent", recon.Pending, "", kinds(recon.FindNeverSent)})
	})
	t.Run("an imported one that does not say what was sent is not failed", func(t *testing.T) {
		t.Parallel()
		d := unsent().op(func(o *recon.Operation) { o.Marks = nil }).policy(fail).looks(listed(now)).decide(now)
		demand(t, d, wants{"never_sent", recon.Pending, "", kinds(recon.FindNeverSent)})
	})
	t.Run("one with a failed effect was sent, whatever its row says", func(t *testing.T) {
		t.Parallel()
		d := unsent().sheet(func(s *recon.Sheet) { s.KeyHoldsOne = false }).effects(refund("re_1", status(recon.EffectFailed))).looks(listedElsewhere(now)).decide(now)
		demand(t, d, wants{rule: "wait", to: recon.Pending})
	})
	t.Run("its effect closes it", func(t *testing.T) {
		t.Parallel()
		demand(t, unsent().policy(fail).effects(refund("re_1")).decide(now), wants{"found", recon.Succeeded, "re_1", nil})
	})
}

func TestB46_PendingAtTheProviderIsNotFailed(t *testing.T) {
	t.Parallel()
	now := sent.Add(6 * 24 * time.Hour)
	d := lost().state(recon.Failed).effects(refund("re_T1", status(recon.InFlight))).decide(now)
	demand(t, d, wants{"conflict", recon.Unknown, "re_T1", kinds(recon.FindConflict)})
	d = lost().op(func(o *recon.Operation) { o.EffectID = "re_T1" }).effects(refund("re_T1", status(recon.InFlight)), refund("re_T2")).decide(now)
	demand(t, d, wants{"duplicate", recon.Succeeded, "re_T2", kinds(recon.FindDuplicate)})

	// Alone it waits, and only after its time people hear that it is the provider's turn.
	waiting := lost().op(func(o *recon.Operation) { o.EffectID = "re_T1" }).effects(refund("re_T1", status(recon.InFlight)))
	d = waiting.decide(now)
	demand(t, d, wants{rule: "in_flight", to: recon.Unknown})
	if len(d.Findings) != 0 || !d.Check.Next.After(now) {
		t.Errorf("findings %v, next look %s; want none and a later look", d.Findings, d.Check.Next)
	}
	now = sent.Add(15 * 24 * time.Hour)
	d = waiting.decide(now)
	demand(t, d, wants{rule: "in_flight", to: recon.Unknown, findings: kinds(recon.FindUnresolved)})
	if len(d.Findings) == 1 && !strings.Contains(d.Findings[0].Reason, "pending at the provider") || !d.Check.Next.After(now) {
		t.Errorf("finding %+v, next look %s", d.Findings, d.Check.Next)
	}
}

func TestB106_ALateEventClosesWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	now := sent.Add(26 * time.Hour)
	open := recon.Finding{Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{"op_1"}, Effects: []recon.EffectRef{}}
	d := lost().state(recon.ManualReview).open(open).effects(refund("re_1")).decide(now)
	demand(t, d, wants{"found", recon.Succeeded, "re_1", nil})
	if len(d.Ends) != 1 || d.Ends[0] != open.Fingerprint() {
		t.Errorf("the finding did not end: %v", d.Ends)
	}
}

func TestB112_AlreadyRefundedStaysFailedAndNamesWhatMovedTheMoney(t *testing.T) {
	t.Parallel()
	byHand := refund("re_EE1", unmarked, after(-2*time.Hour))
	d := lost().state(recon.Failed).op(func(o *recon.Operation) { o.ErrorCode = "charge_already_refunded" }).
		effects(byHand).looks(listed(late, byHand)).decide(late)
	demand(t, d, wants{rule: "refused", to: recon.Failed})
	undisturbed(t, d, late)
	want := "This call did nothing, and the refund of 42.00 EUR for order:1 seems to have been done otherwise; " +
		"not proven, but it could be re_EE1 (completed, by parent and amount only). It can be adopted."
	if d.Reason != want {
		t.Errorf("reason %q\nwant   %q", d.Reason, want)
	}
}

func TestWhatAPersonAcceptedIsNotRaisedAgainUnlessItChanges(t *testing.T) {
	t.Parallel()
	differing := refund("re_1", amount(42), func(e *recon.Effect) { e.Owner = "op_1" })
	raised := lost().state(recon.Succeeded).effects(differing).decide(late).Findings
	if len(raised) != 1 {
		t.Fatalf("findings %v", raised)
	}
	raised[0].State = recon.FindingSettled
	d := lost().state(recon.Succeeded).settled(raised...).effects(differing).decide(late)
	demand(t, d, wants{rule: "wait", to: recon.Succeeded})
	other := refund("re_1", amount(43))
	d = lost().state(recon.Succeeded).settled(raised...).effects(other).decide(late)
	demand(t, d, wants{"mismatch", recon.ManualReview, "", kinds(recon.FindMismatch)})
}

func TestAReversalThatAPersonAcceptedStands(t *testing.T) {
	t.Parallel()
	undone := refund("re_1", status(recon.Reversed), func(e *recon.Effect) { e.Owner = "op_1" })
	for _, s := range []recon.State{recon.Succeeded, recon.Failed} {
		raised := lost().state(s).effects(undone).decide(late).Findings
		d := lost().state(s).op(func(o *recon.Operation) { o.EffectID = "re_1" }).settled(raised...).effects(undone).decide(late)
		demand(t, d, wants{rule: "reversed", to: s})
		if len(raised) != 1 || d.Changes() {
			t.Errorf("%s: raised %d, and again %+v", s, len(raised), d)
		}
	}
}

func TestAnOpenFindingIsNotToldTwice(t *testing.T) {
	t.Parallel()
	first := lost().decide(late)
	demand(t, first, wants{"unresolved", recon.Unknown, "", kinds(recon.FindUnresolved)})
	again := lost().open(first.Findings...).decide(late.Add(time.Hour))
	demand(t, again, wants{rule: "unresolved", to: recon.Unknown})
	if len(again.Ends) != 0 || again.Changes() {
		t.Errorf("a pass that learned nothing changes something: %+v", again)
	}
}

func TestWhoIsToldThatNobodyKnowsIsToldWhyNobodyLooked(t *testing.T) {
	t.Parallel()
	told := lost().looks(blindAt(late)).decide(late)
	if want := "; stripe-main could not be asked: it did not answer."; told.Rule != "unresolved" || !strings.HasSuffix(told.Reason, want) {
		t.Errorf("%s: %q, want it to end in %q", told.Rule, told.Reason, want)
	}
	if j := rules.Judge(lost().c, late, rules.PlaceSeen); len(j.Findings) != 1 || strings.Contains(j.Reason, "could not be asked") {
		t.Errorf("a comparison asks nobody, and tells %q", j.Reason)
	}
	if heard := lost().looks(listed(late)).decide(late); strings.Contains(heard.Reason, "could not be asked") {
		t.Errorf("the source answered, and people are told %q", heard.Reason)
	}
}

func TestFindingsEndWhenTheyNoLongerHold(t *testing.T) {
	t.Parallel()
	owned := func(e *recon.Effect) { e.Owner = "op_1" }
	of := func(d recon.Decision) []recon.Finding { return d.Findings }
	unresolved := of(lost().decide(late))
	duplicate := of(lost().effects(refund("re_1"), refund("re_2")).decide(late))
	conflict := of(lost().state(recon.Failed).effects(refund("re_1")).decide(late))
	mismatch := of(lost().effects(refund("re_1", amount(42))).decide(late))
	tests := []struct {
		name string
		b    *builder
		ends int
	}{
		{"unresolved ends when the effect is in flight", lost().open(unresolved...).effects(refund("re_1", status(recon.InFlight))), 1},
		{"unresolved does not end in a blind pass", lost().open(unresolved...).looks(blindAt(late)), 0},
		{"a duplicate ends when its surplus failed", lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "re_1" }).open(duplicate...).
			effects(refund("re_1", owned), refund("re_2", owned, status(recon.EffectFailed))), 1},
		{"a duplicate stays while both live", lost().state(recon.Succeeded).open(duplicate...).effects(refund("re_1", owned), refund("re_2", owned)), 0},
		{"a duplicate stays when its effects were not read", lost().state(recon.Succeeded).open(duplicate...), 0},
		{"a conflict never ends by itself", lost().state(recon.Succeeded).open(conflict...).effects(refund("re_1", owned)), 0},
		{"a mismatch ends when an equal effect closes it", lost().state(recon.ManualReview).open(mismatch...).
			effects(refund("re_1", amount(42), status(recon.EffectFailed)), refund("re_2")), 1},
		{"a mismatch before a person stays when nothing is seen", lost().state(recon.ManualReview).open(mismatch...), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := tt.b.decide(late); len(d.Ends) != tt.ends {
				t.Errorf("%s ends %v, want %d", d.Rule, d.Ends, tt.ends)
			}
		})
	}
}

func TestASteadyPassWritesNothing(t *testing.T) {
	t.Parallel()
	owned := refund("re_1", func(e *recon.Effect) { e.Owner = "op_1" })
	d := lost().state(recon.Succeeded).op(func(o *recon.Operation) { o.EffectID = "re_1"; o.ClosedAt = sent }).
		effects(owned).looks(listed(late, owned)).decide(late)
	if d.Changes() {
		t.Errorf("a closed operation whose effect still stands changes: %+v", d)
	}
}
