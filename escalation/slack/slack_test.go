package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func workspace(t *testing.T, o slacktest.Options) *slacktest.Server {
	t.Helper()
	s, err := slacktest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func notifier(t *testing.T, s *slacktest.Server, channel string) *Notifier {
	t.Helper()
	n, err := New("recon", Settings{Channel: channel, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSendEditAndFindOverHTTP(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "#payments-recon")
	m := unknownRefund(t)
	receipt, err := n.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	posted := s.Messages("payments-recon")[0]
	if d := cmp.Diff(recon.Receipt{Channel: s.ChannelID("payments-recon"), TS: posted.TS}, receipt); d != "" {
		t.Errorf("receipt: %s", d)
	}
	found, ok, err := n.Find(t.Context(), m, recon.Receipt{}, time.Now().Add(-time.Minute))
	if err != nil || !ok || found != receipt {
		t.Errorf("found %v, %v, %v, want the receipt", found, ok, err)
	}
	m.About.State, m.Story.Operation.State = recon.FindingEnded, recon.Succeeded
	m.Story.Findings = []recon.Finding{m.About}
	if err := n.Edit(t.Context(), receipt, m); err != nil {
		t.Fatal(err)
	}
	edited := s.Messages("payments-recon")[0]
	if edited.Edits != 1 || !strings.Contains(edited.Plain(), "✅ Ended") || edited.TS != posted.TS {
		t.Errorf("got %+v, want the same message, ended", edited)
	}
	// The mark survives the edit: a later look-back still knows the message.
	if _, ok, err := n.Find(t.Context(), m, recon.Receipt{}, time.Now().Add(-time.Minute)); err != nil || !ok {
		t.Errorf("after the edit: %v, %v", ok, err)
	}
}

func TestALookBackReadsEveryPageAndOnlyItsTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	s := workspace(t, slacktest.Options{Now: func() time.Time { return now }})
	n := notifier(t, s, "#payments-recon")
	send := func(notice string) {
		m := unknownRefund(t)
		m.Notice = notice
		if _, err := n.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	send("early")
	now = now.Add(time.Hour)
	begin := now
	send("wanted")
	for i := range 2*pageSize + 20 {
		send(fmt.Sprint("other", i))
	}
	tests := []struct {
		notice string
		want   bool
	}{{"wanted", true}, {"other5", true}, {"early", false}, {"never", false}}
	for _, tt := range tests {
		if _, ok, err := n.Find(t.Context(), escalation.Message{Notice: tt.notice}, recon.Receipt{}, begin); err != nil || ok != tt.want {
			t.Errorf("%s: found %v (%v), want %v", tt.notice, ok, err, tt.want)
		}
	}
	// A page that breaks off is no complete look, so nothing is "not there".
	s.Spoil(slacktest.Fault{Method: "conversations.history", Error: "ratelimited"})
	if _, _, err := n.Find(t.Context(), escalation.Message{Notice: "never"}, recon.Receipt{}, begin); !errors.Is(err, escalation.RateLimited) {
		t.Errorf("got %v, want an error", err)
	}
}

func TestAChannelByNameIsLookedUpOnceAndOnlyWhereItIsNotKnown(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{Channels: []string{"a", "payments-recon"}})
	n := notifier(t, s, "#payments-recon")
	for range 3 {
		if _, ok, err := n.Find(t.Context(), escalation.Message{Notice: "never"}, recon.Receipt{}, time.Now()); err != nil || ok {
			t.Fatalf("got %v, %v", ok, err)
		}
	}
	if _, _, err := notifier(t, s, "#nowhere").Find(t.Context(), escalation.Message{Notice: "never"}, recon.Receipt{}, time.Now()); !errors.Is(err, escalation.Refused) {
		t.Errorf("a channel that is not there: %v, want refused", err)
	}
	if _, _, err := notifier(t, s, s.ChannelID("a")).Find(t.Context(), escalation.Message{Notice: "never"}, recon.Receipt{}, time.Now()); err != nil {
		t.Errorf("a channel by id: %v", err)
	}
	count := map[string]int{}
	for _, c := range s.Calls() {
		count[c.Method]++
	}
	if d := cmp.Diff(map[string]int{"users.conversations": 2, "conversations.history": 4}, count); d != "" {
		t.Errorf("requests: %s", d)
	}
}

func TestANewTokenNeedsNoRestart(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{Token: "xoxb-new"})
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("xoxb-old")
	n, err := New("recon", Settings{Channel: "#payments-recon", TokenFile: file, APIURL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), unknownRefund(t)); !errors.Is(err, escalation.Refused) {
		t.Errorf("the old token: %v, want refused", err)
	}
	write("xoxb-new")
	if _, err := n.Send(t.Context(), unknownRefund(t)); err != nil {
		t.Errorf("the new token: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), unknownRefund(t)); !errors.Is(err, escalation.Refused) || strings.Contains(err.Error(), file) {
		t.Errorf("without the file: %v, want refused and no path", err)
	}
}

// Everything that a server can do, and what it means for the next try.
func TestEveryAnswerIsJudged(t *testing.T) {
	t.Parallel()
	answer := func(status int, header map[string]string, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		kind   escalation.Kind
		code   string
		after  time.Duration
	}{
		{"429 with Retry-After", answer(429, map[string]string{"Retry-After": "7"}, `{"ok":false}`), escalation.RateLimited, "", 7 * time.Second},
		{"429 without", answer(429, nil, `{"ok":false}`), escalation.RateLimited, "http_429", 0},
		{"429 with a date", answer(429, map[string]string{"Retry-After": "Sun, 01 Mar 2026 00:00:00 GMT"}, ``), escalation.RateLimited, "unreadable Retry-After", 0},
		{"ok:false ratelimited", answer(200, nil, `{"ok":false,"error":"ratelimited"}`), escalation.RateLimited, "ratelimited", 0},
		{"ok:false permanent", answer(200, nil, `{"ok":false,"error":"is_archived"}`), escalation.Refused, "is_archived", 0},
		{"ok:false internal", answer(200, nil, `{"ok":false,"error":"internal_error"}`), escalation.Lost, "internal_error", 0},
		{"ok:false form, twice", answer(200, nil, `{"ok":false,"error":"msg_blocks_too_long"}`), escalation.Rejected, "msg_blocks_too_long", 0},
		{"ok:false with a strange word", answer(200, nil, `{"ok":false,"error":"see https://x/?token=xoxb-1"}`), escalation.Refused, "unreadable error", 0},
		{"ok:true without a message", answer(200, nil, `{"ok":true}`), escalation.Lost, "the answer names no message", 0},
		{"an empty object", answer(200, nil, `{}`), escalation.Lost, "the answer names no message", 0},
		{"a proxy's page", answer(200, map[string]string{"Content-Type": "text/html"}, `<html>`), escalation.Lost, "answer is not JSON", 0},
		{"an empty body", answer(200, nil, ``), escalation.Lost, "connection broke", 0},
		{"500", answer(500, nil, `<html>`), escalation.Lost, "http_500", 0},
		{"503", answer(503, nil, ``), escalation.Lost, "http_503", 0},
		{"404", answer(404, nil, ``), escalation.Refused, "http_404", 0},
		{"a redirect is not followed", answer(302, map[string]string{"Location": "http://127.0.0.1:1/"}, ``), escalation.Refused, "http_302", 0},
		{"the connection breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, escalation.Lost, "connection broke", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			t.Cleanup(server.Close)
			n, err := New("recon", Settings{Channel: "C0123456789", Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = n.Send(t.Context(), unknownRefund(t))
			want := &escalation.Error{Destination: "recon", Op: "post message", Kind: tt.kind, Code: tt.code, RetryAfter: tt.after}
			if d := cmp.Diff(error(want), err); d != "" {
				t.Error(d)
			}
			if strings.Contains(fmt.Sprint(err), "TESTONLY") || strings.Contains(fmt.Sprint(err), "127.0.0.1") {
				t.Errorf("%v tells a secret or an address", err)
			}
		})
	}
}

// An answer without an end is read so far and no further. What stops it is the bound,
// not the time limit, which a busy machine may reach first: the reading is counted.
func TestAnEndlessAnswerIsReadSoFarAndNoFurther(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for b := []byte(strings.Repeat(" ", 1<<16)); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	n, err := New("recon", Settings{Channel: "C0123456789", Token: recon.NewSecret("x"), APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	n.http.Timeout = time.Minute
	if _, err := n.Send(t.Context(), unknownRefund(t)); !errors.Is(err, escalation.Lost) || wordOf(err) != "connection broke" {
		t.Errorf("got %v, want a lost answer", err)
	}
	resp, err := n.http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.Copy(io.Discard, resp.Body); err != nil || got != maxReply {
		t.Errorf("read %d bytes (%v), want %d", got, err, maxReply)
	}
}

func TestATimeoutIsALostAnswerAndADialThatFailsIsNot(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	n, err := New("recon", Settings{Channel: "C0123456789", Token: recon.NewSecret("x"), APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	n.http.Timeout = 50 * time.Millisecond
	if _, err := n.Send(t.Context(), unknownRefund(t)); !errors.Is(err, escalation.Lost) {
		t.Errorf("a timeout: %v, want lost", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Send(ctx, unknownRefund(t)); !errors.Is(err, escalation.Lost) {
		t.Errorf("told to stop: %v, want lost", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	n.settings.APIURL = gone.URL + "/"
	n.http.Timeout = time.Minute // a machine that is busy may need more than the 50 ms to be refused
	if _, err := n.Send(t.Context(), unknownRefund(t)); !errors.Is(err, escalation.Unavailable) {
		t.Errorf("nobody listens: %v, want unavailable", err)
	}
}

func TestSettingsNameTheirFaults(t *testing.T) {
	t.Parallel()
	good := Settings{Channel: "#payments-recon", TokenFile: "/run/secrets/slack"}
	with := func(change func(*Settings)) Settings {
		s := good
		change(&s)
		return s
	}
	tests := []struct {
		name string
		s    Settings
		want []string
	}{
		{"good", good, nil},
		{"a channel's id", with(func(s *Settings) { s.Channel = "C0123456789" }), nil},
		{"a name without #", with(func(s *Settings) { s.Channel = "payments-recon" }), nil},
		{"all missing", Settings{}, []string{"channel", "token_file"}},
		{"a mention is no channel", with(func(s *Settings) { s.Channel = "<!channel>" }), []string{"channel"}},
		{"only a #", with(func(s *Settings) { s.Channel = "#" }), []string{"channel"}},
		{"a webhook address is no token", with(func(s *Settings) { s.Token = recon.NewSecret("https://hooks.slack.example/T/B/x") }), []string{"token_file"}},
		{"an address with a user", with(func(s *Settings) { s.APIURL = "https://u:p@slack.example/api/" }), []string{"api_url"}},
		{"an address of another kind", with(func(s *Settings) { s.APIURL = "ftp://slack.example/" }), []string{"api_url"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range tt.s.Validate() {
				got = append(got, f.Path)
				if strings.Contains(f.Error(), "hooks.slack.example") || strings.Contains(f.Error(), "u:p") {
					t.Errorf("%v tells a secret", f)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if _, err := New("recon", tt.s); (err != nil) != (len(tt.want) > 0) {
				t.Errorf("New says %v", err)
			}
		})
	}
}

func TestATokenFileIsReadOrNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		content string
		err     error
		want    string
		fault   string
	}{
		{"a token with a line end", "xoxb-1\n", nil, "xoxb-1", ""},
		{"empty", " \n", nil, "", "/secret is empty; write the bot token into it"},
		{"not there", "", os.ErrNotExist, "", "cannot read /secret: file does not exist; create it with the bot token as its only content"},
	}
	for _, tt := range tests {
		s := Settings{Channel: "#a", TokenFile: "/secret"}
		faults := s.ReadSecrets(func(string) ([]byte, error) { return []byte(tt.content), tt.err })
		problem := ""
		if len(faults) > 0 {
			problem = faults[0].Problem
		}
		if s.Token.Reveal() != tt.want || problem != tt.fault {
			t.Errorf("%s: token %q, fault %q", tt.name, s.Token.Reveal(), problem)
		}
	}
}
