package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type answer struct {
	Status   int
	Retry    string
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	TS       string `json:"ts"`
	Channel  string `json:"channel"`
	HasMore  bool   `json:"has_more"`
	Messages []struct {
		TS       string          `json:"ts"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"messages"`
	Meta struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask makes one request, with a token unless the form brings one.
func ask(t *testing.T, s *Server, method string, pairs ...string) (answer, error) {
	t.Helper()
	form := url.Values{"token": {"xoxb-1"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+method, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: resp.StatusCode, Retry: resp.Header.Get("Retry-After")}
	if resp.Header.Get("Content-Type") != "text/html" {
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatalf("%s answers %q: %v", method, b, err)
		}
	}
	return a, nil
}

func must(t *testing.T, s *Server, method string, pairs ...string) answer {
	t.Helper()
	a, err := ask(t, s, method, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRefusalsUseSlacksWords(t *testing.T) {
	t.Parallel()
	header := `[{"type":"header","text":{"type":"plain_text","text":"` + strings.Repeat("x", 151) + `"}}]`
	section := `{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("x", 3000) + `"}}`
	tests := []struct {
		name, method string
		form         []string
		want         string
	}{
		{"no token", "auth.test", []string{"token", ""}, "invalid_auth"},
		{"another token", "auth.test", []string{"token", "xoxb-2"}, "invalid_auth"},
		{"no channel", "chat.postMessage", []string{"text", "x"}, "channel_not_found"},
		{"an edit by name", "chat.update", []string{"channel", "#payments-recon", "text", "x"}, "channel_not_found"},
		{"history by name", "conversations.history", []string{"channel", "#payments-recon"}, "channel_not_found"},
		{"an edit of nothing", "chat.update", []string{"channel", "C000000001", "ts", "1.0", "text", "x"}, "message_not_found"},
		{"nothing to say", "chat.postMessage", []string{"channel", "#payments-recon"}, "no_text"},
		{"a header over 150", "chat.postMessage", []string{"channel", "#payments-recon", "blocks", header}, "invalid_blocks"},
		{"blocks that are none", "chat.postMessage", []string{"channel", "#payments-recon", "blocks", `{`}, "invalid_blocks_format"},
		{"over 13,200 in all", "chat.postMessage", []string{"channel", "#payments-recon", "blocks", "[" + strings.Repeat(section+",", 4) + section + "]"}, "msg_blocks_too_long"},
		{"51 blocks", "chat.postMessage", []string{"channel", "#payments-recon", "blocks", "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`}, "invalid_blocks"},
		{"metadata without a type", "chat.postMessage", []string{"channel", "#payments-recon", "text", "x", "metadata", `{}`}, "invalid_metadata_format"},
	}
	s := start(t, Options{Token: "xoxb-1"})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := must(t, s, tt.method, tt.form...)
			if a.Status != http.StatusOK || a.OK || a.Error != tt.want {
				t.Errorf("got %d ok=%v %q, want ok:false %q under 200", a.Status, a.OK, a.Error, tt.want)
			}
		})
	}
}

func TestTwoPostsOfOneInstantHaveTwoIDs(t *testing.T) {
	t.Parallel()
	now := time.Unix(1772330000, 0)
	s := start(t, Options{Now: func() time.Time { return now }})
	a := must(t, s, "chat.postMessage", "channel", "#payments-recon", "text", "a")
	b := must(t, s, "chat.postMessage", "channel", "payments-recon", "text", "b")
	if a.TS != "1772330000.000000" || b.TS != "1772330000.000001" || a.Channel != "C000000001" {
		t.Errorf("got %s and %s in %s", a.TS, b.TS, a.Channel)
	}
}

func TestHistoryPagesAndShowsMetadataOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for range 5 {
		must(t, s, "chat.postMessage", "channel", "#payments-recon", "text", "x", "metadata", `{"event_type":"e","event_payload":{"n":"1"}}`)
	}
	var seen []string
	cursor := ""
	for range 4 {
		a := must(t, s, "conversations.history", "channel", "C000000001", "limit", "2", "cursor", cursor, "include_all_metadata", "1")
		for _, m := range a.Messages {
			if m.Metadata == nil {
				t.Error("no metadata, though it was asked for")
			}
			seen = append(seen, m.TS)
		}
		if cursor = a.Meta.Next; cursor == "" {
			break
		}
	}
	var want []string
	for _, m := range s.Messages("payments-recon") {
		want = append([]string{m.TS}, want...) // newest first
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Error(d)
	}
	if a := must(t, s, "conversations.history", "channel", "C000000001", "oldest", want[0]); len(a.Messages) != 0 {
		t.Errorf("after the newest there are %d", len(a.Messages))
	}
	a := must(t, s, "conversations.history", "channel", "C000000001", "oldest", want[0], "inclusive", "1")
	if len(a.Messages) != 1 || a.Messages[0].Metadata != nil {
		t.Errorf("got %+v, want the newest without metadata", a.Messages)
	}
}

func TestPaceIsHeldPerChannel(t *testing.T) {
	t.Parallel()
	now := time.Unix(1772330000, 0)
	s := start(t, Options{Channels: []string{"a", "b"}, Pace: time.Second, Now: func() time.Time { return now }})
	first := must(t, s, "chat.postMessage", "channel", "#a", "text", "x")
	if a := must(t, s, "chat.update", "channel", "C000000001", "ts", first.TS, "text", "y"); a.Status != http.StatusTooManyRequests || a.Retry != "1" {
		t.Errorf("the second at once: %d, Retry-After %q", a.Status, a.Retry)
	}
	if a := must(t, s, "chat.postMessage", "channel", "#b", "text", "x"); !a.OK {
		t.Errorf("another channel: %+v", a)
	}
	now = now.Add(time.Second)
	if a := must(t, s, "chat.update", "channel", "C000000001", "ts", first.TS, "text", "y"); !a.OK {
		t.Errorf("a second later: %+v", a)
	}
	if m := s.Messages("a")[0]; m.Text != "y" || m.Edits != 1 || m.Plain() != "y" {
		t.Errorf("got %+v", m)
	}
}

func TestLostAnswersCannotBeToldFromLostRequests(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]Fault{"answer": {LoseAnswer: true}, "request": {LoseRequest: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{})
			f.Method = "chat.postMessage"
			s.Spoil(f)
			if _, err := ask(t, s, "chat.postMessage", "channel", "#payments-recon", "text", "x"); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want EOF", err)
			}
			stored := 0
			if f.LoseAnswer {
				stored = 1
			}
			if got := len(s.Messages("")); got != stored {
				t.Errorf("%d messages are stored, want %d", got, stored)
			}
			if a := must(t, s, "chat.postMessage", "channel", "#payments-recon", "text", "x"); !a.OK {
				t.Errorf("the next one: %+v", a)
			}
		})
	}
}

func TestFaultsHappenInOrderAndAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	s.Spoil(Fault{Method: "auth.test", Status: 429, RetryAfter: 1500 * time.Millisecond})
	s.Spoil(Fault{Method: "auth.test", Status: 502, Times: 2})
	s.Spoil(Fault{Method: "auth.test", Error: "account_inactive", Times: -1})
	var got []string
	for range 5 {
		a := must(t, s, "auth.test")
		got = append(got, strconv.Itoa(a.Status)+a.Error+a.Retry)
	}
	s.Mend()
	if !must(t, s, "auth.test").OK {
		t.Error("not mended")
	}
	want := []string{"429ratelimited2", "502", "502", "200account_inactive", "200account_inactive"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if calls := s.Calls(); len(calls) != 6 || calls[1].Outcome != "http_502" || calls[5].Outcome != "ok" {
		t.Errorf("calls: %+v", calls)
	}
}
