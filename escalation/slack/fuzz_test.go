package slack

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// FuzzSignature holds that only what Slack's own way of signing makes is believed.
func FuzzSignature(f *testing.F) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	good := slacktest.Sign(testSecret, at, []byte("payload=%7B%7D"))
	f.Add(good.Get("X-Slack-Request-Timestamp"), good.Get("X-Slack-Signature"), []byte("payload=%7B%7D"))
	f.Add(good.Get("X-Slack-Request-Timestamp"), strings.ToUpper(good.Get("X-Slack-Signature")), []byte("payload=%7B%7D"))
	n, err := New("recon", Settings{Channel: "#recon", Token: recon.NewSecret("xoxb-TESTONLY"), SigningSecret: recon.NewSecret(testSecret)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, stamp, signature string, body []byte) {
		believed := n.Verify(http.Header{"X-Slack-Request-Timestamp": {stamp}, "X-Slack-Signature": {signature}}, body, at)
		if !believed {
			return
		}
		for off := -signedWithin; off <= signedWithin; off += time.Second {
			want := slacktest.Sign(testSecret, at.Add(off), body)
			if want.Get("X-Slack-Request-Timestamp") == stamp && strings.EqualFold(want.Get("X-Slack-Signature"), signature) {
				return
			}
		}
		t.Errorf("%q under %q is believed of %q", signature, stamp, body)
	})
}

// FuzzAnswers holds that no answer of Slack's ends in a message that cannot be found again,
// nor in "it is not there" where the answer was none.
func FuzzAnswers(f *testing.F) {
	f.Add(200, `{"ok":true,"channel":"C0123456789","ts":"1772442000.000100"}`)
	f.Add(200, `{"ok":true,"messages":[{"ts":"1.2","metadata":{"event_type":"`+eventType+`","event_payload":{"notice":"NOTICE"}}}],"has_more":false}`)
	f.Add(200, `{"ok":true,"messages":[{"metadata":{"event_type":"`+eventType+`","event_payload":{"notice":"NOTICE"}}}],"response_metadata":{"next_cursor":""}}`)
	f.Add(200, `{"ok":true,"has_more":true,"messages":null,"response_metadata":{"next_cursor":""}}`)
	f.Add(429, `{"ok":false,"error":"ratelimited"}`)
	f.Add(500, `<html>`)
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}))
	f.Cleanup(server.Close)
	n, err := New("recon", Settings{Channel: "C0123456789", Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: server.URL})
	if err != nil {
		f.Fatal(err)
	}
	m := unknownRefund(f)
	f.Fuzz(func(t *testing.T, code int, answer string) {
		if code < 200 || code > 599 {
			return
		}
		status, body = code, strings.ReplaceAll(answer, "NOTICE", m.Notice)
		if r, err := n.Send(t.Context(), m); err == nil && (r.TS == "" || r.Channel == "") {
			t.Errorf("%d %s is taken for a message that is posted: %+v", status, body, r)
		}
		r, found, err := n.Find(t.Context(), m, recon.Receipt{}, time.Unix(1_772_442_000, 0))
		switch {
		case err != nil:
		case found && (r.TS == "" || r.Channel == ""):
			t.Errorf("%d %s is a message that is found: %+v", status, body, r)
		case !found && (status >= 300 || !strings.Contains(body, "ok")):
			t.Errorf("%d %s says that there is no such message", status, body)
		}
	})
}
