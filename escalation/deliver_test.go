package escalation_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const channel = "payments-recon"

func TestAFindingIsToldOnceAndItsMessageEditedWhenItEnds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, f := s.unresolved("4417")
	s.run()
	s.after(time.Minute)
	posted := s.slack.Messages(channel)
	if len(posted) != 1 {
		t.Fatalf("%d messages, want 1", len(posted))
	}
	for _, part := range []string{"42.00 EUR for order:4417", "Nobody knows yet whether it happened", "Ends in 23 h", "It is asked again in", string(o.ID)} {
		if !strings.Contains(posted[0].Plain(), part) {
			t.Errorf("the message does not say %q:\n%s", part, posted[0].Plain())
		}
	}
	s.pass(o.ID, nil, f)
	s.after(time.Minute)
	s.after(time.Hour)
	edited := s.slack.Messages(channel)
	if len(edited) != 1 || edited[0].TS != posted[0].TS || edited[0].Edits != 1 {
		t.Fatalf("got %d messages, edited %d times, want the same one edited once", len(edited), edited[0].Edits)
	}
	if text := edited[0].Plain(); !strings.Contains(text, "Ended: refund of 42.00 EUR for order:4417") || !strings.Contains(text, "It was found, completed and equal") {
		t.Errorf("the edit does not say that and how it ended:\n%s", text)
	}
	want(t, "posts", s.calls("chat.postMessage"), "ok")
	want(t, "edits", s.calls("chat.update"), "ok")
}

func TestAMessageSaysWhoHearsOfItNext(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy = escalation.Policy{Ladders: map[string][]escalation.Step{"default": {{To: channel}, {After: 4 * time.Hour, To: channel, Mention: "oncall"}}}}
	s.deliver.Policy = s.policy
	s.unresolved("1")
	s.run()
	said := func() string { return s.slack.Messages(channel)[0].Plain() }
	if next := "calling oncall"; !strings.Contains(said(), next) {
		t.Errorf("without %q:\n%s", next, said())
	}
	s.after(5 * time.Hour)
	s.after(time.Minute)
	if strings.Contains(said(), "If nobody acts") {
		t.Errorf("no step is left:\n%s", said())
	}
}

func TestB33_AStoredPostWhoseAnswerWasLostIsFoundAndNotRepeated(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseAnswer: true})
	s.run()
	s.after(14 * time.Second) // a request may still be under way: not yet
	want(t, "look-backs too early", s.calls("conversations.history"), "")
	s.after(time.Second)
	s.after(time.Hour)
	want(t, "posts", s.calls("chat.postMessage"), "answer lost")
	want(t, "look-backs", s.calls("conversations.history"), "ok")
	want(t, "messages", len(s.slack.Messages(channel)), 1)
	want(t, "recovered", s.results[channel][escalation.Recovered], 1)
}

func TestB33_APostThatNeverArrivedIsPostedOnceAndMarked(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseRequest: true})
	s.run()
	s.after(15 * time.Second)
	s.after(time.Hour)
	want(t, "posts", s.calls("chat.postMessage"), "request lost ok")
	all := s.slack.Messages(channel)
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "Possibly a repeat") {
		t.Errorf("got %d messages, want one that is marked as a possible repeat: %+v", len(all), all)
	}
	want(t, "repeated", s.results[channel][escalation.Repeated], 1)
}

func TestB33_WhereNobodyMayLookBackTheMessageIsRepeatedRatherThanLost(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseAnswer: true})
	s.slack.Spoil(slacktest.Fault{Method: "conversations.history", Error: "missing_scope", Times: -1})
	s.run()
	s.after(15 * time.Second)
	s.after(time.Hour)
	all := s.slack.Messages(channel)
	if len(all) != 2 || strings.Contains(all[0].Plain(), "Possibly a repeat") || !strings.Contains(all[1].Plain(), "Possibly a repeat") {
		t.Errorf("got %d messages, want two of which the second is marked", len(all))
	}
}

func TestALookBackThatFailsForTheMomentIsTriedAgainThenGivenUp(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseAnswer: true})
	s.slack.Spoil(slacktest.Fault{Method: "conversations.history", Status: http.StatusServiceUnavailable, Times: 3})
	for range 40 {
		s.after(30 * time.Second)
	}
	want(t, "look-backs", s.calls("conversations.history"), "http_503 http_503 http_503 ok")
	want(t, "messages", len(s.slack.Messages(channel)), 1)
	s.unresolved("2")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseAnswer: true})
	s.slack.Spoil(slacktest.Fault{Method: "conversations.history", Status: http.StatusServiceUnavailable, Times: -1})
	for range 100 {
		s.after(30 * time.Second)
	}
	want(t, "messages, one of them a repeat", len(s.slack.Messages(channel)), 3)
	want(t, "repeated", s.results[channel][escalation.Repeated], 1)
}

func TestAPostThatNobodyRecordedIsFoundByTheNextProcess(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, f := s.unresolved("1")
	due, err := s.led.DueNotices(t.Context(), s.clock.now(), 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("%d due (%v), want 1", len(due), err)
	}
	// This process claims and posts, and is killed before it can record.
	now := s.clock.now()
	if ok, err := s.led.ClaimNotice(t.Context(), due[0].ID, s.story(o.ID).Findings[0].Version, now, now.Add(2*time.Minute)); err != nil || !ok {
		t.Fatalf("claim: %v, %v", ok, err)
	}
	m := escalation.Message{Notice: due[0].ID, Act: recon.ActTell, About: f, Story: s.story(o.ID), Now: now}
	if _, err := s.deliver.Notifiers[channel].Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s.deliver = s.deliverer()
	s.after(time.Minute)
	want(t, "posts while the claim lasts", s.calls("chat.postMessage"), "ok")
	s.after(time.Minute)
	want(t, "posts", s.calls("chat.postMessage"), "ok")
	want(t, "channel look-ups", s.calls("users.conversations"), "ok")
	want(t, "recovered", s.results[channel][escalation.Recovered], 1)
	want(t, "undelivered", s.snapshot().OldestNotice.IsZero(), true)
}

func TestDestinationsOfOneChannelShareItsPace(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	leads, err := slack.New("leads", slack.Settings{Channel: "#payments-recon", Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: s.slack.URL()})
	if err != nil {
		t.Fatal(err)
	}
	s.deliver.Notifiers["leads"] = leads
	s.policy.Everybody = []string{"leads", channel}
	for _, name := range []string{"1", "2", "3"} {
		s.unresolved(name)
	}
	began := s.clock.now()
	s.run()
	want(t, "posts", s.calls("chat.postMessage"), "ok ok ok ok ok ok") // the workspace refuses what comes sooner
	want(t, "time", s.clock.now().Sub(began), 5*time.Second)
}

func TestOneMessageASecond(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		s.unresolved(name)
	}
	began := s.clock.now()
	s.run()
	want(t, "posts", s.calls("chat.postMessage"), "ok ok ok ok ok") // the workspace refuses what comes sooner
	want(t, "time", s.clock.now().Sub(began), 4*time.Second)
}

func TestSlackOutOfReachIsTriedAgainWithoutDoubt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Close()
	for range 5 {
		s.after(10 * time.Second)
	}
	want(t, "posted", s.results[channel][escalation.Posted], 0)
	want(t, "postponed", s.results[channel][escalation.Postponed] >= 2, true)
	up, err := slacktest.Start(slacktest.Options{Now: s.clock.now, Pace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	s.slack = up
	s.deliver = s.deliverer()
	s.after(5 * time.Minute)
	want(t, "requests", len(up.Calls()), 1)
	want(t, "messages", len(up.Messages(channel)), 1)
}

func TestB31_AMessageRefusedForItsFormIsPostedAsPlainText(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", Error: "invalid_blocks"})
	s.run()
	s.after(time.Minute)
	all := s.slack.Messages(channel)
	if len(all) != 1 || all[0].Blocks != nil || !strings.Contains(all[0].Text, "order:1") {
		t.Errorf("got %+v, want one plain message that names the order", all)
	}
}

func TestAMessageThatAPersonDeletedIsToldAnewWhenItEnds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, f := s.unresolved("1")
	s.run()
	s.slack.Delete(s.slack.Messages(channel)[0].TS)
	s.pass(o.ID, nil, f)
	s.after(time.Minute)
	s.after(time.Minute)
	all := s.slack.Messages(channel)
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "Ended") {
		t.Errorf("got %+v, want one new message that says that it ended", all)
	}
}

func TestALostAnswerToAnEditIsSimplyEditedAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, f := s.unresolved("1")
	s.run()
	s.pass(o.ID, nil, f)
	s.slack.Spoil(slacktest.Fault{Method: "chat.update", LoseAnswer: true})
	s.after(time.Minute)
	s.after(time.Minute)
	want(t, "edits", s.calls("chat.update"), "answer lost ok")
	want(t, "look-backs", s.calls("conversations.history"), "")
	want(t, "messages", len(s.slack.Messages(channel)), 1)
}

func TestAFindingThatEndedBeforeItWasToldIsToldAsEnded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.slack.Archive(channel, true)
	o, f := s.unresolved("1")
	s.run()
	s.pass(o.ID, nil, f)
	s.slack.Archive(channel, false)
	for range 5 {
		s.after(10 * time.Minute)
	}
	all := s.slack.Messages(channel)
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "Ended") {
		t.Errorf("got %+v, want one message that says that it ended", all)
	}
	want(t, "oldest undelivered", s.snapshot().OldestNotice.IsZero(), true)
}

// What a pass shows is read at its beginning, and a pass of many messages takes a while.
func TestAFindingThatEndsWhileAnotherIsToldIsToldAsEnded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	o, f := s.unresolved("2")
	var once sync.Once
	s.deliver.Pause = func(ctx context.Context, d time.Duration) error { // before the second message
		once.Do(func() { s.pass(o.ID, nil, f) })
		return s.clock.wait(ctx, d)
	}
	s.run()
	if all := s.slack.Messages(channel); len(all) != 1 || strings.Contains(all[0].Plain(), "order:2") {
		t.Fatalf("got %+v, want the message of the first alone", all)
	}
	s.after(time.Second)
	if all := s.slack.Messages(channel); len(all) != 2 || !strings.Contains(all[1].Plain(), "Ended") {
		t.Errorf("got %+v, want a second message that says that it ended", all)
	}
	want(t, "posts", s.calls("chat.postMessage"), "ok ok")
	s.after(time.Minute)
	want(t, "undelivered", s.snapshot().OldestNotice.IsZero(), true)
}

func TestANewFindingOfAnOperationHasAMessageOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, unresolved := s.unresolved("1")
	s.run()
	s.after(time.Hour)
	missing := finding(o, recon.FindMissing)
	s.pass(o.ID, []recon.Finding{missing}, unresolved)
	s.after(time.Second)
	s.after(time.Minute)
	all := s.slack.Messages(channel)
	if len(all) != 2 {
		t.Fatalf("%d messages, want 2", len(all))
	}
	if !strings.Contains(all[0].Plain(), "Told anew in another message") || !strings.Contains(all[1].Plain(), "it is not there") {
		t.Errorf("the first message must point on, the second tell the new finding:\n%s\n---\n%s", all[0].Plain(), all[1].Plain())
	}
}

func TestAFindingNamedInAGraverOnesMessageIsToldWhenThatOneEnds(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o := s.lost("1")
	duplicate, mismatch := finding(o, recon.FindDuplicate), finding(o, recon.FindMismatch)
	s.pass(o.ID, []recon.Finding{mismatch, duplicate})
	s.run()
	s.after(5 * time.Second)
	all := s.slack.Messages(channel)
	if len(all) != 1 || !strings.Contains(all[0].Plain(), "more than once") || !strings.Contains(all[0].Plain(), "Also on this operation: mismatch") {
		t.Fatalf("the graver one alone must be told and name the other: %+v", all)
	}
	s.pass(o.ID, nil, duplicate)
	s.after(time.Minute)
	s.after(time.Minute)
	all = s.slack.Messages(channel)
	if len(all) != 2 || !strings.Contains(all[0].Plain(), "Told anew in another message") || !strings.Contains(all[1].Plain(), "differs from what was asked") {
		t.Fatalf("the other one is still open and must be told: %+v", all)
	}
	s.pass(o.ID, nil, mismatch)
	s.after(time.Minute)
	s.after(time.Minute)
	all = s.slack.Messages(channel)
	if len(all) != 2 || !strings.Contains(all[1].Plain(), "Ended") {
		t.Errorf("%d messages, want both to say that all ended:\n%s", len(all), all[1].Plain())
	}
}

func TestTwoProcessesPostOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, name := range []string{"1", "2", "3"} {
		s.unresolved(name)
	}
	other := s.deliverer()
	var wg sync.WaitGroup
	for _, d := range []*escalation.Deliverer{s.deliver, other} {
		wg.Go(func() {
			if _, err := d.Pass(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 5 {
		s.after(time.Minute)
	}
	want(t, "messages", len(s.slack.Messages(channel)), 3)
}

func TestADestinationThatIsNoLongerConfiguredIsCounted(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.deliver.Notifiers = map[string]escalation.Notifier{}
	s.run()
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 1)
	if !strings.Contains(s.log.String(), "no such destination in the configuration") {
		t.Errorf("the log does not say why:\n%s", s.log)
	}
}

func TestB100_NoTokenOrAddressInLogsAndErrors(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.unresolved("1")
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", LoseRequest: true})
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", Status: http.StatusBadGateway})
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", Error: "invalid_auth"})
	for range 20 {
		s.after(time.Minute)
	}
	s.slack.Close()
	_, err := s.deliver.Notifiers[channel].Send(t.Context(), escalation.Message{})
	if _, ok := errors.AsType[*escalation.Error](err); !ok {
		t.Fatalf("got %v, want an *escalation.Error", err)
	}
	said := s.log.String() + err.Error()
	for _, leak := range []string{"TESTONLY", "127.0.0.1", "http://"} {
		if strings.Contains(said, leak) {
			t.Errorf("%q is told:\n%s", leak, said)
		}
	}
}
