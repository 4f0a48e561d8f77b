package slack

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const testSecret = "8f742231b10e8888TESTONLY"

func signedBy(t *testing.T, s Settings) *Notifier {
	t.Helper()
	s.Channel, s.Token = "#payments-recon", recon.NewSecret("xoxb-TESTONLY")
	n, err := New("recon", s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOnlyWhatSlackSignedLatelyIsBelieved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	body := []byte("payload=%7B%7D")
	with := func(change func(http.Header)) http.Header {
		h := slacktest.Sign(testSecret, now, body)
		change(h)
		return h
	}
	n := signedBy(t, Settings{SigningSecret: recon.NewSecret(testSecret)})
	tests := map[string]struct {
		header http.Header
		body   string
		want   bool
	}{
		"as Slack sends it":    {slacktest.Sign(testSecret, now, body), string(body), true},
		"minutes ago":          {slacktest.Sign(testSecret, now.Add(-4*time.Minute), body), string(body), true},
		"minutes on":           {slacktest.Sign(testSecret, now.Add(4*time.Minute), body), string(body), true},
		"too old":              {slacktest.Sign(testSecret, now.Add(-10*time.Minute), body), string(body), false},
		"from the future":      {slacktest.Sign(testSecret, now.Add(10*time.Minute), body), string(body), false},
		"another app's secret": {slacktest.Sign("another", now, body), string(body), false},
		"another body":         {slacktest.Sign(testSecret, now, body), string(body) + "&a=b", false},
		"no headers":           {http.Header{}, string(body), false},
		"no signature":         {with(func(h http.Header) { h.Del("X-Slack-Signature") }), string(body), false},
		"no time":              {with(func(h http.Header) { h.Del("X-Slack-Request-Timestamp") }), string(body), false},
		"a time that is none":  {with(func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "now") }), string(body), false},
		"another time":         {with(func(h http.Header) { h.Set("X-Slack-Request-Timestamp", "1") }), string(body), false},
		"cut short": {with(func(h http.Header) {
			h.Set("X-Slack-Signature", h.Get("X-Slack-Signature")[:20])
		}), string(body), false},
		"another version": {with(func(h http.Header) {
			h.Set("X-Slack-Signature", "v1="+strings.TrimPrefix(h.Get("X-Slack-Signature"), "v0="))
		}), string(body), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := n.Verify(tt.header, []byte(tt.body), now); got != tt.want {
				t.Errorf("believed: %v, want %v", got, tt.want)
			}
			// The client that Slack's users know judges the same, by the clock of the machine.
			v, err := slackgo.NewSecretsVerifier(tt.header, testSecret)
			if err == nil {
				_, _ = v.Write([]byte(tt.body)) // it is a hash
				err = v.Ensure()
			}
			if (err == nil) != tt.want {
				t.Errorf("slack-go says %v", err)
			}
		})
	}
	for apart, want := range map[time.Duration]bool{
		-5 * time.Minute: true, 5 * time.Minute: true, -5*time.Minute - time.Second: false, 5*time.Minute + time.Second: false,
	} {
		if got := n.Verify(slacktest.Sign(testSecret, now.Add(apart), body), body, now.Truncate(time.Second)); got != want {
			t.Errorf("signed %s from now: believed %v, want %v", apart, got, want)
		}
	}
	if signedBy(t, Settings{}).Verify(slacktest.Sign("", now, body), body, now) {
		t.Error("without a signing secret something is believed")
	}
}

func TestANewSigningSecretNeedsNoRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signing")
	n := signedBy(t, Settings{SigningSecret: recon.NewSecret("old"), SigningSecretFile: file})
	now, body := time.Now(), []byte("x")
	if !n.Verify(slacktest.Sign("old", now, body), body, now) {
		t.Error("the file is gone, and what was read before is forgotten")
	}
	if err := os.WriteFile(file, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !n.Verify(slacktest.Sign("new", now, body), body, now) || n.Verify(slacktest.Sign("old", now, body), body, now) {
		t.Error("the file's new secret is not the one that counts")
	}
}

// body is what Slack posts for an interaction.
func interaction(t *testing.T, text string) []byte {
	t.Helper()
	return []byte(url.Values{"payload": {text}}.Encode())
}

const clickText = `{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"channel":{"id":"C000000001"},
	"container":{"type":"message","message_ts":"1.000002"},"trigger_id":"9.t","response_url":"https://hooks.slack.com/actions/1",
	"message":{"blocks":[{"type":"a_block_of_the_future","x":[1]}]},
	"actions":[{"action_id":"acknowledge","action_ts":"2.000003","value":"{\"finding\":\"f1\",\"version\":4}"}]}`

const formText = `{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"view":{"id":"V1",
	"callback_id":"reconciler_decide","private_metadata":"{\"finding\":\"f1\",\"version\":4,\"verb\":\"happened\",\"answer\":\"https://hooks.slack.com/actions/1\"}",
	"state":{"values":{"reason":{"reason":{"type":"plain_text_input","value":" seen \n"}},"effect":{"effect":{"value":"re_1"}}}}}}`

func TestClicksAndFormsAreRead(t *testing.T) {
	t.Parallel()
	click := Action{Sort: Click, Accounts: []string{"T1/U1"}, Verb: recon.Acknowledge, Button: Button{Finding: "f1", Version: 4},
		Key: "slack/click/1.000002/2.000003/T1/U1", Channel: "C000000001", Trigger: "9.t", Answer: "https://hooks.slack.com/actions/1"}
	form := Action{Sort: Submission, Accounts: []string{"T1/U1"}, Verb: recon.Happened, Button: Button{Finding: "f1", Version: 4},
		Key: "slack/form/V1/T1/U1", Answer: "https://hooks.slack.com/actions/1", View: "V1", Entry: Entry{Reason: "seen", Effect: "re_1"}}
	other := func(a Action) Action {
		return Action{Sort: Other, Accounts: a.Accounts, Channel: a.Channel, Trigger: a.Trigger, Answer: a.Answer}
	}
	swap := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	guest := click
	guest.Accounts, guest.Key = []string{"T2/U1"}, "slack/click/1.000002/2.000003/T2/U1"
	grid := click
	grid.Accounts = []string{"T1/U1", "E1/U1"}
	fixed := form
	fixed.Entry = Entry{Reason: "seen", Effect: "re_proposed", Operation: "op_1"}
	tests := map[string]struct {
		text string
		want Action
	}{
		"a click":                       {clickText, click},
		"a guest in a shared channel":   {swap(clickText, `"team_id":"T1"`, `"team_id":"T2"`), guest},
		"a guest of another enterprise": {swap(clickText, `"team_id":"T1"`, `"team_id":"T2"`, `"channel"`, `"enterprise":{"id":"E1"},"channel"`), guest},
		"an enterprise":                 {swap(clickText, `"channel"`, `"enterprise":{"id":"E1"},"channel"`), grid},
		"no user":                       {swap(clickText, `"id":"U1"`, `"id":""`), Action{Sort: Other, Channel: click.Channel, Trigger: click.Trigger, Answer: click.Answer}},
		"another app's button":          {swap(clickText, "acknowledge", "order_pizza"), other(click)},
		"a button's value that is none": {swap(clickText, `{\"finding\":\"f1\",\"version\":4}`, `f1`), other(click)},
		"a value without a version":     {swap(clickText, `,\"version\":4`, ``), other(click)},
		"no message":                    {swap(clickText, `1.000002`, ``), other(click)},
		"a shortcut":                    {swap(clickText, `block_actions`, `shortcut`), other(click)},
		"a form":                        {formText, form},
		"another app's form":            {swap(formText, `reconciler_decide`, `pizza`), Action{Sort: Other, Accounts: form.Accounts}},
		"a form about nothing":          {swap(formText, `\"finding\":\"f1\"`, `\"finding\":\"\"`), Action{Sort: Other, Accounts: form.Accounts}},
		"a form that was closed":        {swap(formText, `view_submission`, `view_closed`), Action{Sort: Other, Accounts: form.Accounts}},
		"what was proposed is fixed":    {swap(formText, `\"happened\"`, `\"happened\",\"effect\":\"re_proposed\",\"operation\":\"op_1\"`), fixed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAction(interaction(t, tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(Entry{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for _, body := range []string{"", "payload=", "payload=null", "payload=%7B", "payload={}", "payload=[]", "%zz", "x=1", clickText} {
		if a, err := ParseAction([]byte(body)); err == nil {
			t.Errorf("%q is read as %+v", body, a)
		}
	}
}

func FuzzParseAction(f *testing.F) {
	for _, text := range []string{clickText, formText} {
		f.Add([]byte(url.Values{"payload": {text}}.Encode()))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := ParseAction(body)
		if err != nil || a.Sort == Other {
			return
		}
		if a.Finding == "" || a.Version < 1 || len(a.Accounts) == 0 || a.Verb == "" || a.Key == "" || len([]rune(a.Key)) > 1024 {
			t.Errorf("%q is taken as %+v", body, a)
		}
		if again, err := ParseAction(body); err != nil || again.Key != a.Key {
			t.Errorf("told again it has the key %q, not %q (%v)", again.Key, a.Key, err)
		}
		for field := range a.Entry.Faults(a.Verb) {
			if field == "" {
				t.Error("a fault of no field")
			}
		}
	})
}

func TestWhatAFormLacksIsSaidAtItsField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		verb   recon.Verb
		fields map[string]string
		want   []string
	}{
		"all is there":              {recon.Happened, map[string]string{"reason": "seen", "effect": "re_1"}, nil},
		"no reason":                 {recon.DidNotHappen, map[string]string{"reason": " "}, []string{"reason"}},
		"no reason to reject":       {recon.Reject, nil, []string{"reason"}},
		"a reason of 5,000 letters": {recon.Release, map[string]string{"reason": strings.Repeat("ж", 5000)}, []string{"reason"}},
		"an id of 5,000 letters":    {recon.Happened, map[string]string{"reason": "seen", "effect": strings.Repeat("x", 5000)}, []string{"effect"}},
		"no effect":                 {recon.Happened, map[string]string{"reason": "seen", "effect": " "}, []string{"effect"}},
		"a character that is none":  {recon.Happened, map[string]string{"reason": "a\x00b"}, []string{"reason"}},
		"lines are no fault":        {recon.Happened, map[string]string{"reason": "one\ntwo\t<!channel>"}, nil},
		"no time":                   {recon.Snooze, map[string]string{"reason": ""}, []string{"for"}},
		"a time that was not asked": {recon.Snooze, map[string]string{"for": "9000d"}, []string{"for"}},
		"one of the times":          {recon.Snooze, map[string]string{"for": "4h"}, nil},
		"nobody":                    {recon.Assign, nil, []string{"assignee"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := map[string]map[string]entered{}
			for field, v := range tt.fields {
				values[field] = map[string]entered{field: {Value: v}}
			}
			metadata, err := json.Marshal(subject{Button: Button{Finding: "f1", Version: 1}, Verb: tt.verb})
			if err != nil {
				t.Fatal(err)
			}
			var p payload
			p.Type, p.User.ID, p.User.Team, p.View.ID, p.View.Callback, p.View.Metadata = "view_submission", "U1", "T1", "V1", formCallback, string(metadata)
			p.View.State.Values = values
			a := Action{Accounts: []string{"T1/U1"}}
			p.submission(&a)
			var got []string
			for field, text := range a.Entry.Faults(tt.verb) {
				if got = append(got, field); text == "" {
					t.Errorf("nothing is said at %s", field)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("fields with faults (-want +got):\n%s", d)
			}
		})
	}
}
