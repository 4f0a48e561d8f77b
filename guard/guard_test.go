package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestACallIsAnsweredWithOneOfFourVerdicts(t *testing.T) {
	t.Parallel()
	never := repeatable()
	never.Repeat = recon.RepeatNever
	for name, test := range map[string]struct {
		policy  recon.Policy
		answers []recon.AttemptReport
		action  string
		verdict guard.Verdict
		final   bool
		state   recon.State
		sent    int
		says    string
	}{
		"done":                             {repeatable(), []recon.AttemptReport{done}, "", guard.Succeeded, true, recon.Succeeded, 1, "It is done"},
		"done at the repeat":               {repeatable(), []recon.AttemptReport{lost, done}, "", guard.Succeeded, true, recon.Succeeded, 2, "It is done"},
		"refused":                          {repeatable(), []recon.AttemptReport{refused}, "", guard.FailedSafeToRetry, true, recon.Failed, 1, "will not"},
		"not sent, as often as a call may": {repeatable(), []recon.AttemptReport{notSent}, "", guard.FailedSafeToRetry, false, recon.Pending, 3, "may be made again"},
		"not sent, then done":              {repeatable(), []recon.AttemptReport{notSent, done}, "", guard.Succeeded, true, recon.Succeeded, 2, "It is done"},
		"lost, and no repeat allowed":      {never, []recon.AttemptReport{lost}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither success nor failure"},
		"lost for ever":                    {repeatable(), []recon.AttemptReport{lost}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 3, "neither success nor failure"},
		"a stored error ends repeating":    {repeatable(), []recon.AttemptReport{{Class: recon.ClassStoredError}}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither"},
		"taken on is not asked again":      {repeatable(), []recon.AttemptReport{{Class: recon.ClassAccepted, EffectID: "re_1"}}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither"},
		"no class is indeterminate":        {never, []recon.AttemptReport{{EffectID: "re_1"}}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither"},
		"a class that nobody knows":        {never, []recon.AttemptReport{{Class: "fine", EffectID: "re_1"}}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither"},
		"a success without a name":         {never, []recon.AttemptReport{{Class: recon.ClassSucceeded}}, "", guard.UnknownReconciliationRequired, false, recon.Unknown, 1, "neither"},
		"an action without a policy":       {repeatable(), []recon.AttemptReport{done}, "wire.send", guard.RejectedByPolicy, true, "", 0, "no policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, test.policy)
			in := intent("1")
			if test.action != "" {
				in.Action = test.action
			}
			a := s.do(guard.Call{Intent: in, Send: s.provider.answers(test.answers...)})
			if a.Verdict != test.verdict || a.Final != test.final || a.State != test.state || a.Attempts != test.sent {
				t.Errorf("answer %+v", a)
			}
			if !strings.Contains(a.Text, test.says) {
				t.Errorf("text %q does not say %q", a.Text, test.says)
			}
			if test.state != "" && s.state(a.Operation) != test.state {
				t.Errorf("the ledger says %s, want %s", s.state(a.Operation), test.state)
			}
		})
	}
}

func TestB15_AResumedRunIsTheSameOperationAndGetsTheStoredResult(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	call := guard.Call{Intent: intent("7"), Send: s.provider.answers(done)}
	first := s.do(call)
	for _, later := range []time.Duration{0, time.Minute, 72 * time.Hour} {
		s.advance(later)
		again := s.do(call)
		if again.Operation != first.Operation || again.Verdict != guard.Succeeded || again.Attempts != 0 ||
			string(again.Result) != `{"id": "re_1"}` || again.Opening != "existing" {
			t.Errorf("%s later: %+v", later, again)
		}
	}
	if effects, sends := s.provider.effects(); effects != 1 || sends != 1 {
		t.Errorf("%d effects, %d sends", effects, sends)
	}
}

func TestResumedAfterThreeDaysAnUnknownOutcomeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	in := guard.Call{Intent: intent("1"), Send: s.provider.answers(lost)}
	s.do(in)
	s.advance(72 * time.Hour)
	in.Send = s.provider.answers(done)
	a := s.do(in)
	if a.Verdict != guard.UnknownReconciliationRequired || a.Attempts != 0 || !strings.Contains(a.Reason, "key lifetime is over") {
		t.Errorf("answer %+v", a)
	}
}

func TestB17_OneTriggerTwiceAtTheSameMomentSendsOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var wg sync.WaitGroup
	answers := make([]guard.Answer, 8)
	release := make(chan struct{})
	send := func(_ context.Context, a guard.Attempt) recon.AttemptReport {
		<-release // until all others have been answered
		s.provider.receive(a.Key)
		return done
	}
	answered := make(chan struct{}, len(answers))
	for i := range answers {
		wg.Go(func() {
			a, err := s.guard.Do(t.Context(), guard.Call{Intent: intent("1"), Send: send})
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
			answered <- struct{}{}
		})
	}
	for range len(answers) - 1 {
		<-answered
	}
	close(release)
	wg.Wait()
	count := map[guard.Verdict]int{}
	for _, a := range answers {
		count[a.Verdict]++
		if a.Operation != answers[0].Operation {
			t.Errorf("operations %s and %s", a.Operation, answers[0].Operation)
		}
	}
	diff(t, "verdicts", map[guard.Verdict]int{guard.Succeeded: 1, guard.UnknownReconciliationRequired: 7}, count)
	if effects, sends := s.provider.effects(); effects != 1 || sends != 1 {
		t.Errorf("%d effects, %d sends", effects, sends)
	}
}

func TestB29_ALateWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var second guard.Answer
	slow := func(_ context.Context, a guard.Attempt) recon.AttemptReport {
		s.advance(61 * time.Second) // stalls past its lease; another one takes over and succeeds
		second = s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(done)})
		return refused
	}
	first := s.do(guard.Call{Intent: intent("1"), Send: slow})
	if second.Verdict != guard.Succeeded || first.Verdict != guard.Succeeded || first.State != recon.Succeeded {
		t.Errorf("the second one: %+v\nthe late one: %+v", second, first)
	}
	diff(t, "journal", []string{"opened", "attempt_started", "decision", "attempt_started", "attempt_finished", "attempt_finished"},
		s.kinds(first.Operation))
}

func TestB41_AnotherAmountUnderTheSameKeyIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	in := intent("300")
	in.Key, in.Case, in.Step = "k-300", "", nil
	first := s.do(guard.Call{Intent: in, Send: s.provider.answers(lost)})
	in.Amount = 1200
	a := s.do(guard.Call{Intent: in, Send: s.provider.answers(done)})
	if a.Verdict != guard.RejectedByPolicy || a.Opening != "conflict" || a.Attempts != 0 || !strings.Contains(a.Text, "another request") {
		t.Errorf("answer %+v", a)
	}
	if s.state(first.Operation) != recon.Unknown {
		t.Error("the conflict changed the first operation")
	}
}

func TestB43_ARepeatPastTheKeysLifetimeIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		later time.Duration
		sends bool
	}{
		"an hour later":                {time.Hour, true},
		"within the margin of its end": {23*time.Hour + 40*time.Minute, false},
		"after its end":                {25 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(lost)})
			s.advance(test.later)
			a := s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(done)})
			if (a.Attempts > 0) != test.sends || !test.sends && a.Verdict != guard.UnknownReconciliationRequired {
				t.Errorf("answer %+v", a)
			}
		})
	}
}

func TestB45_WhatWasNeverSentSaysSo(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	a := s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(notSent)})
	story, err := s.ledger.Story(t.Context(), a.Operation)
	if err != nil {
		t.Fatal(err)
	}
	if o := story.Operation; o.State != recon.Pending || !o.SentAt.IsZero() || o.InDoubt {
		t.Errorf("state %s, sent at %v, in doubt %v: no call was made", o.State, o.SentAt, o.InDoubt)
	}
}

func TestAttemptsEndAtTheOperationsLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	call := guard.Call{Intent: intent("1"), Send: s.provider.answers(lost)}
	sent := 0
	for range 4 {
		s.advance(5 * time.Minute)
		sent += s.do(call).Attempts
	}
	if sent != 6 {
		t.Errorf("%d attempts in four calls, want the operation's 6", sent)
	}
	call.ID = "one" // the same call again has its own limit
	call.Intent = intent("2")
	sent = s.do(call).Attempts
	s.advance(5 * time.Minute)
	if sent += s.do(call).Attempts; sent != 3 {
		t.Errorf("%d attempts of one call, want 3", sent)
	}
}

func TestTheStoredRequestIsSentNotWhatTheCallerHolds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	var got guard.Attempt
	a := s.do(guard.Call{Intent: intent("1"), Send: func(_ context.Context, a guard.Attempt) recon.AttemptReport { got = a; return done }})
	diff(t, "attempt", guard.Attempt{Operation: a.Operation, Key: a.Key, Request: json.RawMessage(`{"amount": 4200, "charge": "ch_1"}`),
		Marker: ledger.Marker{Name: "operation_id", Value: string(a.Operation)}, Number: 1}, got)
}

func TestARepeatKnowsThatAnEarlierAttemptIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first recon.AttemptReport
		want  bool
	}{"after one that was lost": {lost, true}, "after one that was not sent": {notSent, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			var doubts []bool
			s.do(guard.Call{Intent: intent("1"), Send: func(_ context.Context, a guard.Attempt) recon.AttemptReport {
				doubts = append(doubts, a.InDoubt)
				if a.Number == 1 {
					return test.first
				}
				return done
			}})
			diff(t, "in doubt", []bool{false, test.want}, doubts)
		})
	}
}

func TestACallerThatLeavesIsStillRecorded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ctx, cancel := context.WithCancel(t.Context())
	a, err := s.guard.Do(ctx, guard.Call{Intent: intent("1"), Send: func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		cancel()
		<-ctx.Done()
		return lost
	}})
	if err != nil || a.State != recon.Unknown || a.Attempts != 1 {
		t.Errorf("answer %+v, %v", a, err)
	}
	if got := s.state(a.Operation); got != recon.Unknown {
		t.Errorf("the ledger says %s", got)
	}
}

func TestASendIsCalledOnlyWhileItsLeaseLasts(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.guard.Lease = time.Second
	began := time.Now()
	a := s.do(guard.Call{Intent: intent("1"), ID: "c", Send: func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		end, ok := ctx.Deadline()
		if left := end.Sub(began); !ok || left > time.Since(began)+time.Second {
			t.Errorf("deadline in %v, longer than the lease of a second", left)
			return done // and not wait for it
		}
		<-ctx.Done()
		return done
	}})
	if a.Verdict != guard.Succeeded {
		t.Errorf("answer %+v", a)
	}
	slow := &guard.Guard{Ledger: late{s.ledger}, Holder: "slow", Lease: time.Second}
	a, err := slow.Do(t.Context(), guard.Call{Intent: intent("2"), Send: func(context.Context, guard.Attempt) recon.AttemptReport {
		t.Error("sent after the lease")
		return done
	}})
	if err != nil || a.State != recon.Pending {
		t.Errorf("a claim that was answered too late: %+v, %v", a, err)
	}
}

// late answers a claim after its lease, as a process does that was stopped meanwhile.
type late struct{ guard.Ledger }

func (l late) Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.ClaimAnswer, error) {
	a, err := l.Ledger.Claim(ctx, r)
	time.Sleep(1100 * time.Millisecond)
	return a, err
}

func TestACallerWithoutTimeForARepeatIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	p := repeatable()
	p.Backoff = recon.Backoff{Base: recon.Duration(time.Hour), Max: recon.Duration(time.Hour)}
	s := newStand(t, p)
	guard.SetPause(s.guard, func(context.Context, time.Duration) error { t.Error("waited"); return nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	a, err := s.guard.Do(ctx, guard.Call{Intent: intent("1"), Send: s.provider.answers(lost)})
	if err != nil || a.Attempts != 1 || a.RetryAfter <= 0 || a.Verdict != guard.UnknownReconciliationRequired {
		t.Errorf("answer %+v, %v", a, err)
	}
}

func TestACallersLimitCountsWhatIsDoneAndOpen(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	limit := func(most int64) func(ledger.Already) error {
		return func(already ledger.Already) error {
			succeeded, err := already.Succeeded.Int64()
			open, err2 := already.Open.Int64()
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
			if succeeded+open+4200 > most {
				return errors.New("more than the order's total")
			}
			return nil
		}
	}
	call := func(step int64, send guard.Send) guard.Call {
		in := intent("9")
		in.Step = &step
		return guard.Call{Intent: in, Send: send, Allow: limit(10_000)}
	}
	s.do(call(1, s.provider.answers(done)))
	s.do(call(2, s.provider.answers(lost)))
	a := s.do(call(3, s.provider.answers(done)))
	if a.Verdict != guard.RejectedByPolicy || a.State != recon.Failed || a.Attempts != 0 || !strings.Contains(a.Text, "order's total") {
		t.Errorf("answer %+v", a)
	}
	diff(t, "already", ledger.Already{Succeeded: "4200", Open: "4200"}, a.Already)
	if effects, _ := s.provider.effects(); effects != 2 {
		t.Errorf("%d effects, want 2", effects)
	}
}

func TestAnOpenOperationForTheSameIsNotSentBySomebodyElse(t *testing.T) {
	t.Parallel()
	p := repeatable()
	p.OneOpen = true
	s := newStand(t, p)
	first := s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(lost)})
	in := intent("1")
	in.Case = "another"
	a := s.do(guard.Call{Intent: in, Send: s.provider.answers(done)})
	if a.Operation != first.Operation || a.Opening != "open_elsewhere" || a.Attempts != 0 || a.Verdict != guard.UnknownReconciliationRequired {
		t.Errorf("answer %+v", a)
	}
}

func TestAReportThatTheLedgerRefusesIsToldWithLess(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for name, test := range map[string]struct {
		report recon.AttemptReport
		want   recon.State
	}{
		"a result that is no JSON":  {recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: "re_1", Result: json.RawMessage(`{`)}, recon.Succeeded},
		"a result that is too long": {recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: "re_1", Result: json.RawMessage(`{"id":"` + strings.Repeat("x", 70_000) + `"}`)}, recon.Succeeded},
		"an endless error code":     {recon.AttemptReport{Class: recon.ClassRefused, ErrorCode: long}, recon.Failed},
		"U+0000 in a request id":    {recon.AttemptReport{Class: recon.ClassRefused, RequestID: "a\x00"}, recon.Failed},
		"an endless effect id":      {recon.AttemptReport{Class: recon.ClassSucceeded, EffectID: long}, recon.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := repeatable()
			p.Repeat = recon.RepeatNever
			s := newStand(t, p)
			if a := s.do(guard.Call{Intent: intent("1"), Send: s.provider.answers(test.report)}); a.State != test.want {
				t.Errorf("answer %+v, want state %s", a, test.want)
			}
		})
	}
}

// away fails like a database that is restarting.
type away struct {
	guard.Ledger
	opens, claims, finishes int
}

var gone = &ledger.Fault{Op: "x", Kind: ledger.FaultUnreachable}

func (l *away) OpenOperation(ctx context.Context, r ledger.OpenRequest) (ledger.OpenAnswer, error) {
	if l.opens--; l.opens >= 0 {
		return ledger.OpenAnswer{}, gone
	}
	return l.Ledger.OpenOperation(ctx, r)
}

func (l *away) Claim(ctx context.Context, r ledger.ClaimRequest) (ledger.ClaimAnswer, error) {
	a, err := l.Ledger.Claim(ctx, r)
	if l.claims--; l.claims >= 0 {
		return ledger.ClaimAnswer{}, gone // granted, and the answer was lost
	}
	return a, err
}

func (l *away) Finish(ctx context.Context, r ledger.FinishRequest) (ledger.FinishAnswer, error) {
	if l.finishes--; l.finishes >= 0 {
		return ledger.FinishAnswer{}, gone
	}
	return l.Ledger.Finish(ctx, r)
}

func TestWhileTheLedgerIsAwayNothingIsClaimedToBeKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ledger away
		sends  int
		fails  bool
		want   guard.Verdict
	}{
		"at the opening":         {away{opens: 1}, 0, true, guard.UnknownReconciliationRequired},
		"at the claim's answer":  {away{claims: 1}, 0, true, guard.UnknownReconciliationRequired},
		"a moment at the finish": {away{finishes: 3}, 1, false, guard.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			test.ledger.Ledger = s.ledger
			g := &guard.Guard{Ledger: &test.ledger, Holder: "test"}
			a, err := g.Do(t.Context(), guard.Call{Intent: intent("1"), Send: s.provider.answers(done)})
			if a.Verdict != test.want || (err != nil) != test.fails {
				t.Errorf("answer %+v, %v", a, err)
			}
			if _, sends := s.provider.effects(); sends != test.sends {
				t.Errorf("%d sends, want %d", sends, test.sends)
			}
		})
	}
}

func TestAnIntentThatTheLedgerCannotTakeIsRefusedWithTheNextStep(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	in := intent("1")
	in.Request = json.RawMessage(`{"amount":10.5}`)
	a, err := s.guard.Do(t.Context(), guard.Call{Intent: in, Send: s.provider.answers(done)})
	var usage *ledger.UsageError
	if !errors.As(err, &usage) || a.Verdict != guard.RejectedByPolicy || !strings.Contains(a.Text, "whole number") {
		t.Errorf("answer %+v, %v", a, err)
	}
}
