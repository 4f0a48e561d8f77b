package escalation_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
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
