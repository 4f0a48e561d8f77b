package escalation_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestRetryAfterIsHonouredAndBounded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		asked    time.Duration
		tooEarly time.Duration
		then     time.Duration
	}{
		{"as asked", 30 * time.Second, 29 * time.Second, time.Second},
		{"without a number a second", 0, 900 * time.Millisecond, 200 * time.Millisecond},
		{"a day is too long to be silent", 24 * time.Hour, 9*time.Minute + 59*time.Second, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.unresolved("1")
			s.unresolved("2")
			s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", Status: http.StatusTooManyRequests, RetryAfter: tt.asked})
			s.run()
			s.after(tt.tooEarly)
			want(t, "posts before the time", s.calls("chat.postMessage"), "http_429")
			s.after(tt.then)
			s.after(time.Second)
			want(t, "posts", s.calls("chat.postMessage"), "http_429 ok ok")
			want(t, "look-backs, since nothing was in doubt", s.calls("conversations.history"), "")
		})
	}
}

func TestB32_ARefusalIsCountedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		word        string
		spoil, mend func(*slacktest.Server)
	}{
		{"is_archived", func(s *slacktest.Server) { s.Archive(channel, true) }, func(s *slacktest.Server) { s.Archive(channel, false) }},
		{"not_in_channel", func(s *slacktest.Server) { s.Kick(channel, true) }, func(s *slacktest.Server) { s.Kick(channel, false) }},
		{"channel_not_found", always("channel_not_found"), (*slacktest.Server).Mend},
		{"account_inactive", always("account_inactive"), (*slacktest.Server).Mend},
		{"token_revoked", always("token_revoked"), (*slacktest.Server).Mend},
		{"a_word_of_tomorrow", always("a_word_of_tomorrow"), (*slacktest.Server).Mend},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.unresolved("1")
			s.unresolved("2")
			tt.spoil(s.slack)
			s.run()
			want(t, "requests, since the second would be refused as well", s.calls("chat.postMessage"), tt.word)
			want(t, "undelivered", s.snapshot().UndeliveredOpen, 2)
			want(t, "undelivered by metric", s.results[channel][escalation.Undelivered], 2)
			if log := s.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, tt.word) {
				t.Errorf("the log does not say %s at error:\n%s", tt.word, log)
			}
			s.after(9 * time.Minute)
			want(t, "requests before it is tried again", s.calls("chat.postMessage"), tt.word)
			tt.mend(s.slack)
			s.after(time.Minute)
			s.after(time.Minute)
			want(t, "messages after it was mended", len(s.slack.Messages(channel)), 2)
			want(t, "undelivered after it was mended", s.snapshot().UndeliveredOpen, 0)
		})
	}
}

func always(word string) func(*slacktest.Server) {
	return func(s *slacktest.Server) {
		s.Spoil(slacktest.Fault{Method: "chat.postMessage", Error: word, Times: -1})
	}
}

func TestB117_OneBadDestinationStopsNoOther(t *testing.T) {
	t.Parallel()
	s := newStand(t, "team-a", "team-b")
	s.slack.Archive("team-a", true)
	for _, name := range []string{"1", "2", "3"} {
		s.unresolved(name)
	}
	for range 10 {
		s.after(2 * time.Second)
	}
	want(t, "messages of team-a", len(s.slack.Messages("team-a")), 0)
	want(t, "messages of team-b", len(s.slack.Messages("team-b")), 3)
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 3)
}

func TestAFullOutboxOfABadDestinationHidesNoOther(t *testing.T) {
	t.Parallel()
	s := newStand(t, "team-a", channel)
	s.slack.Archive("team-a", true)
	s.policy = escalation.Policy{Everybody: []string{"team-a"}, FoldAt: 100}
	for range 25 { // more than one pass reads
		s.unresolved("1")
	}
	s.policy.Everybody = []string{channel}
	s.unresolved("2")
	s.run()
	s.run()
	want(t, "messages of the other", len(s.slack.Messages(channel)), 1)
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 25)
	want(t, "requests to the bad one", strings.Count(s.calls("chat.postMessage"), "is_archived"), 1)
}

func TestATokenRevokedInTheMiddleOfAFloodLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy.FoldAt = 1000
	for i := range 12 {
		s.unresolved(fmt.Sprint(i))
	}
	s.slack.Spoil(slacktest.Fault{Method: "chat.postMessage", Error: "token_revoked", After: 5, Times: -1})
	for range 3 {
		s.run()
	}
	want(t, "messages before it was revoked", len(s.slack.Messages(channel)), 5)
	want(t, "requests with a revoked token", strings.Count(s.calls("chat.postMessage"), "token_revoked"), 1)
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 7)
	s.slack.Mend()
	for range 4 {
		s.after(10 * time.Minute)
	}
	want(t, "messages in the end", len(s.slack.Messages(channel)), 12)
	want(t, "look-backs, since nothing was in doubt", s.calls("conversations.history"), "")
	want(t, "undelivered in the end", s.snapshot().UndeliveredOpen, 0)
}

func TestAChannelThatIsRenamedIsToldByItsID(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	o, f := s.unresolved("1")
	s.run()
	s.slack.Rename(channel, "payments-old")
	s.unresolved("2")
	s.pass(o.ID, nil, f)
	s.after(time.Minute)
	s.after(time.Minute)
	all := s.slack.Messages("payments-old")
	if len(all) != 2 || !strings.Contains(all[0].Plain(), "Ended") {
		t.Fatalf("%d messages, want the second posted and the first changed", len(all))
	}
	// A new process knows only the old name: it says so, and nothing is lost.
	s.deliver = s.deliverer()
	s.unresolved("3")
	s.run()
	want(t, "undelivered", s.snapshot().UndeliveredOpen, 1)
	if !strings.Contains(s.log.String(), "channel_not_found") {
		t.Errorf("the log does not say why:\n%s", s.log)
	}
	s.slack.Rename("payments-old", channel)
	s.after(10 * time.Minute)
	want(t, "messages in the end", len(s.slack.Messages(channel)), 3)
}

func TestManyReplicasTellOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.policy.FoldAt = 1000
	for i := range 8 {
		o := s.lost(fmt.Sprint(i))
		s.pass(o.ID, []recon.Finding{finding(o, recon.FindUnresolved)})
	}
	s.wait(10 * time.Second)
	var wg sync.WaitGroup
	for range 4 {
		d := s.deliverer()
		p := escalation.Planner{Desk: s.led, Policy: s.policy, Now: s.clock.now}
		wg.Go(func() {
			for range 3 {
				if _, err := p.Pass(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := d.Pass(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for range 10 { // what Slack's pace refused
		s.after(10 * time.Second)
	}
	want(t, "messages", len(s.slack.Messages(channel)), 8)
	want(t, "notices", s.count(`SELECT count(*) FROM reconciler.notices WHERE act = 'tell'`), 8)
}
