package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestAProbeWaitsTwiceAsLongEachTime(t *testing.T) {
	t.Parallel()
	var st ledger.SourceState
	now := monday
	var waits []time.Duration
	for range 9 {
		st = afterBlind(st, now)
		if st.ProbeAt.IsZero() {
			waits = append(waits, 0)
			continue
		}
		waits = append(waits, st.ProbeAt.Sub(now))
		now = st.ProbeAt
	}
	want := []time.Duration{0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	for i := range want {
		if waits[i] != want[i] {
			t.Errorf("after blind answer %d: %v, want %v", i+1, waits[i], want[i])
		}
	}
	if !st.BlindSince.Equal(monday) {
		t.Errorf("blind since %v, want the first blind answer", st.BlindSince)
	}
}

func TestAClockThatRanAheadKeepsNoSourceUnasked(t *testing.T) {
	t.Parallel()
	ahead := afterBlind(afterBlind(ledger.SourceState{}, monday), monday.AddDate(1, 0, 0))
	for _, tt := range []struct {
		name string
		st   ledger.SourceState
		now  time.Time
		want bool
	}{
		{"it answers", ledger.SourceState{}, monday, false},
		{"its time has not come", ledger.SourceState{Blinds: 2, ProbeAt: monday.Add(maxProbe)}, monday, false},
		{"its time has come", ledger.SourceState{Blinds: 2, ProbeAt: monday}, monday, true},
		{"planned by a clock a year ahead", ahead, monday.Add(time.Minute), true},
	} {
		if got := probeDue(tt.st, tt.now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	early := afterBlind(ledger.SourceState{Blinds: 3, BlindSince: monday.AddDate(1, 0, 0)}, monday)
	if !early.BlindSince.Equal(monday) {
		t.Errorf("blind since %v, want now: it cannot be blind since a time to come", early.BlindSince)
	}
}

func TestWhatMakesAnAnswerBlind(t *testing.T) {
	t.Parallel()
	sheet := recon.Sheet{Accounts: []recon.Account{{Account: "acct_1", Mode: "live"}}}
	blind := func(fault sources.Kind) recon.Look {
		return recon.Look{Outcome: recon.Blind, Fault: string(fault), Account: "acct_1", Mode: "live"}
	}
	elsewhere := blind(sources.WrongAccount)
	elsewhere.Account = "acct_9"
	for _, tt := range []struct {
		name  string
		looks []recon.Look
		want  bool
	}{
		{"nothing was asked", nil, false},
		{"every look was blind", []recon.Look{blind(sources.Timeout), blind(sources.Unavailable)}, true},
		{"one look was answered", []recon.Look{blind(sources.Timeout), {Outcome: recon.Absent}}, false},
		{"the questions were none of the source's", []recon.Look{elsewhere, blind(sources.Unsupported)}, false},
		{"the key opens another account", []recon.Look{blind(sources.WrongAccount)}, true},
	} {
		if _, got := blindAnswer(sources.Answer{Looks: tt.looks}, sheet); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// An hour without provider: few calls, few rows, one finding, nothing closed, and all
// is caught up afterwards.
func TestAnOutageIsOneFindingAndFewCalls(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const operations = 40
	s.sweep.batch = 10
	keys := make([]string, operations)
	for n := range operations {
		keys[n] = s.lose(refund(n))
	}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	rows := len(s.everything())
	s.stripe.ResetCalls()
	for range 60 {
		s.pass(time.Minute)
		if out := s.run(); out.Succeeded+out.Failed+out.ManualReview+out.Released > 0 {
			t.Fatalf("closed while blind: %+v", out)
		} else if out.Blind > 0 && out.BlindReason == "" {
			t.Fatalf("blind, and nobody is told why: %+v", out)
		}
	}
	if calls := len(s.stripe.Calls()); calls > 40 {
		t.Errorf("%d calls to a dead provider in an hour", calls)
	}
	if blind := s.findings(recon.FindBlind); len(blind) != 1 || blind[0].State != recon.FindingOpen {
		t.Errorf("findings %+v", blind)
	}
	state, err := s.ledger.SourceState(t.Context(), testSource)
	if err != nil || !state.BlindSince.Equal(monday.Add(time.Minute)) {
		t.Errorf("state %+v, %v", state, err)
	}
	// One run a minute: no look, no journal entry and no finding for an operation that
	// could not be asked.
	if more := len(s.everything()) - rows; more > 60+20 {
		t.Errorf("%d new rows in an hour of outage", more)
	}
	s.stripe.ClearFaults()
	for n := range operations {
		s.happen(refund(n), keys[n])
	}
	closed := 0
	for range 25 {
		s.pass(time.Minute)
		closed += s.run().Succeeded
	}
	if closed != operations {
		t.Errorf("%d of %d were closed after the outage", closed, operations)
	}
	if blind := s.findings(recon.FindBlind); len(blind) != 1 || blind[0].State != recon.FindingEnded {
		t.Errorf("findings after the outage %+v", blind)
	}
	if state, err = s.ledger.SourceState(t.Context(), testSource); err != nil || !state.BlindSince.IsZero() || state.Blinds != 0 {
		t.Errorf("state after the outage %+v, %v", state, err)
	}
}

func TestAQuestionThatIsNoneOfTheSourcesDoesNotSayThatItIsBack(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.lose(refund(1))
	s.lose(refund(2))
	s.exec(`UPDATE reconciler.operations SET account = 'acct_gone' WHERE operation_id = $1`, refund(2).id)
	s.exec(`UPDATE reconciler.checks SET next_check = $1 WHERE operation_id = $2`, monday.Add(2*time.Minute), refund(2).id)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	s.pass(time.Minute)
	s.run()
	before, err := s.ledger.SourceState(t.Context(), testSource)
	if err != nil || before.BlindSince.IsZero() {
		t.Fatalf("state %+v, %v; want blind", before, err)
	}
	s.exec(`UPDATE reconciler.checks SET next_check = $1 WHERE operation_id = $2`, monday.Add(time.Hour), refund(1).id)
	s.pass(time.Minute)
	if out := s.run(); out.Claimed != 1 || out.Blind != 1 {
		t.Errorf("outcome %+v, want the other one, blind", out)
	}
	after, err := s.ledger.SourceState(t.Context(), testSource)
	if err != nil || after.Blinds != before.Blinds || !after.BlindSince.Equal(before.BlindSince) {
		t.Errorf("state %+v, %v; want it still blind, as %+v", after, err, before)
	}
}

func TestWhatIsStoredConcludesWhileTheSourceIsDown(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	first, second := refund(1), refund(2)
	first.charge, second.charge = "", ""
	s.happen(first, s.lose(first))
	s.open(second)
	_, key := s.claim(second)
	s.happen(second, key)
	s.pass(50 * time.Second)
	s.run()
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Closed, Times: stripetest.Always})
	for n := 3; n < 6; n++ {
		s.lose(refund(n))
		s.pass(time.Minute)
		s.run()
	}
	s.wantState(second, recon.Succeeded)
	s.wantState(refund(3), recon.Unknown)
}

func TestASourceThatIsDownIsFoundAgainWhileNothingIsDue(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	key := s.lose(i)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.ServerError, Times: stripetest.Always})
	for range 20 {
		s.pass(time.Minute)
		s.run()
	}
	if len(s.findings(recon.FindBlind)) != 1 {
		t.Fatal("the outage is no finding")
	}
	s.stripe.ClearFaults()
	s.happen(i, key)
	s.exec(`UPDATE reconciler.checks SET next_check = $1`, s.now().Add(100*time.Hour))
	s.pass(11 * time.Minute)
	if out := s.run(); out.Claimed != 0 || out.ProviderCalls != 1 {
		t.Errorf("outcome %+v", out)
	}
	if blind := s.findings(recon.FindBlind); blind[0].State != recon.FindingEnded {
		t.Errorf("finding %+v", blind[0])
	}
}

// What an event told of is asked for while no operation is due, and such an answer tells of the
// source as any other does.
func TestASourceThatIsOnlyReadAtIsKnownToBeDownAndBack(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	made := s.happen(refund(1), "key-1")
	want := func() {
		t.Helper()
		r := ledger.Reading{Source: testSource, Kind: "refund", Account: testAccount, Mode: "live", EffectID: made.ID, From: monday}
		if err := s.ledger.WantReadings(t.Context(), []ledger.Reading{r}, s.now()); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
		s.run()
	}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.ServerError, Times: 1})
	want()
	s.stripe.ClearFaults()
	want()
	if state, err := s.ledger.SourceState(t.Context(), testSource); err != nil || state.Blinds != 0 || !state.BlindSince.IsZero() {
		t.Errorf("after one answer that told nothing and one that did: %+v, %v", state, err)
	}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.ServerError, Times: stripetest.Always})
	began := s.now().Add(time.Minute)
	for range 30 {
		want()
	}
	blind := s.findings(recon.FindBlind)
	if len(blind) != 1 || blind[0].State != recon.FindingOpen {
		t.Fatalf("findings %+v; nobody is told of half an hour without an answer", blind)
	}
	if state, err := s.ledger.SourceState(t.Context(), testSource); err != nil || !state.BlindSince.Equal(began) {
		t.Errorf("state %+v, %v; want it blind since %s", state, err, began)
	}
	s.stripe.ClearFaults()
	s.pass(11 * time.Minute)
	s.run()
	if blind = s.findings(recon.FindBlind); blind[0].State != recon.FindingEnded {
		t.Errorf("finding %+v", blind[0])
	}
}
