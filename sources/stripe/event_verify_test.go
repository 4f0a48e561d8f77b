package stripe_test

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

const (
	hookSecret    = "whsec_TESTONLY_1"
	oldHookSecret = "whsec_TESTONLY_0"
)

// now is when the deliveries of these tests come.
var now = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// mark signs as Stripe documents it, without stripe-go.
func mark(at time.Time, body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return hex.EncodeToString(mac.Sum(nil))
}

func signed(at time.Time, body []byte, secrets ...string) http.Header {
	line := fmt.Sprintf("t=%d", at.Unix())
	for _, secret := range secrets {
		line += ",v1=" + mark(at, body, secret)
	}
	return http.Header{"Stripe-Signature": {line}}
}

// receiver is a source of acct_1 live and the connected acct_shop, whose secret is being
// rolled.
func receiver(t *testing.T, change func(*stripe.Settings)) *stripe.Source {
	t.Helper()
	set := stripe.Settings{System: "stripe", Marker: marker, APIKey: recon.NewSecret(liveKey), Accounts: []stripe.AccountSettings{
		{Account: "acct_1"}, {Account: "acct_shop", Connected: true},
	}, Webhook: stripe.WebhookSettings{Secrets: []recon.Secret{recon.NewSecret(oldHookSecret), recon.NewSecret(hookSecret)}}}
	if change != nil {
		change(&set)
	}
	return open(t, set, stripe.Options{})
}

func why(err error) sources.RefusalKind {
	var refusal *sources.Refusal
	if errors.As(err, &refusal) {
		return refusal.Why
	}
	return ""
}

const plainEvent = `{"id":"evt_1","object":"event","api_version":"2025-08-27.basil","created":1772440000,"livemode":true,"type":"refund.created","data":{"object":{"id":"re_1","object":"refund"}}}`

func TestADeliveryIsTakenOnlyWithARightSignature(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	body := []byte(plainEvent)
	seconds := fmt.Sprint(now.Unix())
	good := mark(now, body, hookSecret)
	line := func(s string) http.Header { return http.Header{"Stripe-Signature": {s}} }
	tests := []struct {
		name   string
		header http.Header
		want   sources.RefusalKind // empty: taken
	}{
		{"signed", signed(now, body, hookSecret), ""},
		{"signed with the secret that goes", signed(now, body, oldHookSecret), ""},
		{"signed with both, as while a secret is rolled", signed(now, body, "whsec_next", hookSecret), ""},
		{"with an old scheme beside", line("t=" + seconds + ",v1=" + good + ",v0=" + strings.Repeat("0", 64)), ""},
		{"with blanks after the commas", line("t=" + seconds + ", v1=" + good), ""},
		{"the time after the signature", line("v1=" + good + ",t=" + seconds), ""},
		{"a signature that is no hex before the right one", line("t=" + seconds + ",v1=zz,v1=" + good), ""},
		{"no header", http.Header{}, sources.BadSignature},
		{"an empty header", line(""), sources.BadSignature},
		{"two headers", http.Header{"Stripe-Signature": {"t=" + seconds + ",v1=" + good, "t=" + seconds + ",v1=" + good}}, sources.BadSignature},
		{"another source's secret", signed(now, body, "whsec_TESTONLY_other"), sources.BadSignature},
		{"an empty secret", signed(now, body, ""), sources.BadSignature},
		{"no time", line("v1=" + good), sources.BadSignature},
		{"two times", line("t=" + seconds + ",t=1,v1=" + good), sources.BadSignature},
		{"twice the same time", line("t=" + seconds + ",t=" + seconds + ",v1=" + good), sources.BadSignature},
		{"a time that is no number", line("t=now,v1=" + good), sources.BadSignature},
		{"a time with a sign", line("t=+" + seconds + ",v1=" + good), sources.BadSignature},
		{"a negative time", line("t=-1,v1=" + good), sources.BadSignature},
		{"a time out of range", line("t=99999999999999999999,v1=" + good), sources.BadSignature},
		{"no signature", line("t=" + seconds), sources.BadSignature},
		{"only the old scheme", line("t=" + seconds + ",v0=" + good), sources.BadSignature},
		{"a scheme that looks like it", line("t=" + seconds + ",V1=" + good + ",v11=" + good), sources.BadSignature},
		{"half a signature", line("t=" + seconds + ",v1=" + good[:32]), sources.BadSignature},
		{"an empty signature", line("t=" + seconds + ",v1="), sources.BadSignature},
		{"no pairs", line("t=" + seconds + ",v1=" + good + ",and more"), sources.BadSignature},
		{"more signatures than anybody needs", line("t=" + seconds + strings.Repeat(",v1=00", 16) + ",v1=" + good), sources.BadSignature},
		{"another time than the signed one", line(fmt.Sprintf("t=%d,v1=%s", now.Unix()+1, good)), sources.BadSignature},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := src.Verify(tt.header, body, now)
			if why(err) != tt.want || (err == nil) != (tt.want == "") {
				t.Fatalf("Verify: %v, want %q", err, tt.want)
			}
			if err == nil && (!e.Signed || e.ID != "evt_1" || !bytes.Equal(e.Body, body)) {
				t.Errorf("event = %+v", e)
			}
			if err != nil && strings.Contains(err.Error(), "whsec_") {
				t.Errorf("the refusal shows a secret: %v", err)
			}
		})
	}
	for i := range body {
		changed := bytes.Clone(body)
		changed[i] ^= 1
		if _, err := src.Verify(signed(now, body, hookSecret), changed, now); why(err) != sources.BadSignature {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
}

func TestB99_ASignedTimeMayDifferFromOursByTheToleranceEitherWay(t *testing.T) {
	t.Parallel()
	body := []byte(plainEvent)
	tests := []struct {
		name      string
		tolerance time.Duration
		ours      time.Duration // our clock, from the signed time
		want      sources.RefusalKind
	}{
		{"on time", 0, 0, ""},
		{"as late as may be", 0, 300 * time.Second, ""},
		{"too late", 0, 301 * time.Second, sources.TooOld},
		{"late by less than a second", 0, 300*time.Second + time.Millisecond, sources.TooOld},
		{"as early as may be", 0, -300 * time.Second, ""},
		{"from the future", 0, -301 * time.Second, sources.TooOld},
		{"twenty minutes in a queue", 0, 20 * time.Minute, sources.TooOld},
		{"twenty minutes in a queue that is known of", 30 * time.Minute, 20 * time.Minute, ""},
		{"a narrow tolerance", 10 * time.Second, 11 * time.Second, sources.TooOld},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			src := receiver(t, func(s *stripe.Settings) { s.Webhook.Tolerance = recon.Duration(tt.tolerance) })
			_, err := src.Verify(signed(now, body, hookSecret), body, now.Add(tt.ours))
			if why(err) != tt.want || (err == nil) != (tt.want == "") {
				t.Errorf("Verify: %v, want %q", err, tt.want)
			}
			// Nobody else can make us believe that a clock is wrong.
			if _, err := src.Verify(signed(now, body, "whsec_forged"), body, now.Add(tt.ours)); why(err) != sources.BadSignature {
				t.Errorf("forged: %v", err)
			}
		})
	}
}

func TestWithoutASecretNothingIsTaken(t *testing.T) {
	t.Parallel()
	src := receiver(t, func(s *stripe.Settings) { s.Webhook.Secrets = nil })
	if src.Sheet().Webhooks {
		t.Error("the sheet says that it delivers events")
	}
	for _, secret := range []string{"", hookSecret} {
		if _, err := src.Verify(signed(now, []byte(plainEvent), secret), []byte(plainEvent), now); why(err) != sources.BadSignature {
			t.Errorf("secret %q: %v", secret, err)
		}
	}
}

func TestTheEnvelopeIsReadFromWhateverIsSigned(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	created := time.Unix(1772440000, 0).UTC()
	tests := []struct {
		name, body string
		want       recon.Event
	}{
		{"a plain event", plainEvent,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_1", Type: "refund.created", Version: "2025-08-27.basil", CreatedAt: created}},
		{"a connected account", `{"id":"evt_2","account":"acct_shop","livemode":true,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_shop", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"an account that is not the source's", `{"id":"evt_2","account":"acct_9","livemode":true,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_9", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"a mode that is not the source's", `{"id":"evt_2","livemode":false,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "test", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"no mode", `{"id":"evt_2","created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"another API version", `{"id":"evt_2","object":"event","api_version":"2026-08-26.dahlia","livemode":true,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "x.y", Version: "2026-08-26.dahlia", CreatedAt: created}},
		{"a request of before 2017", `{"id":"evt_2","request":"req_1","livemode":true,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"a thin event", `{"id":"evt_3","object":"v2.core.event","context":"acct_shop","livemode":true,"created":"2026-03-02T08:26:40.123Z","type":"v1.x","related_object":{"id":"re_1","type":"refund","url":"/v1/refunds/re_1"}}`,
			recon.Event{Account: "acct_shop", Mode: "live", ID: "evt_3", Type: "v1.x", CreatedAt: created}},
		{"no time, no type", `{"id":"evt_2","livemode":true}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "unknown", CreatedAt: now}},
		{"a time that is none", `{"id":"evt_2","livemode":true,"created":-5,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: now}},
		{"an account of another type", `{"id":"evt_2","account":7,"livemode":true,"created":1772440000,"type":"x.y"}`,
			recon.Event{Account: "acct_1", Mode: "live", ID: "evt_2", Type: "x.y", CreatedAt: created}},
		{"a path to an account", `{"id":"evt_3","object":"v2.core.event","context":"org_1/acct_shop","livemode":true,"created":"2026-03-02T08:26:40Z","type":"v1.x"}`,
			recon.Event{Account: "acct_shop", Mode: "live", ID: "evt_3", Type: "v1.x", CreatedAt: created}},
		{"an account that is no name", `{"id":"evt_2","account":"a\u0000b","livemode":true,"created":1772440000,"type":"a\nb"}`,
			recon.Event{Account: "", Mode: "live", ID: "evt_2", Type: "unknown", CreatedAt: created}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := src.Verify(signed(now, []byte(tt.body), hookSecret), []byte(tt.body), now)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			want.Version = cmp.Or(want.Version, "unknown")
			want.Source, want.System, want.Signed, want.Body = "stripe-main", "stripe", true, []byte(tt.body)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestB71_NulAndBrokenSurrogatesAreNoFault(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	ids := map[string]bool{}
	for _, body := range []string{`{"id":"evt_n","d":"a\u0000b"}`, `{"d":"a\\u0000b"}`, `{"d":"\ud800"}`, `{"id":"evt_\u0000","d":"\ud800"}`, "{\"d\":\"\xff\"}"} {
		e, err := src.Verify(signed(now, []byte(body), hookSecret), []byte(body), now)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		again, _ := src.Verify(signed(now, []byte(body), hookSecret), []byte(body), now.Add(time.Minute))
		if e.ID == "" || ids[e.ID] || again.ID != e.ID || string(e.Body) != body || strings.ContainsRune(e.ID, 0) {
			t.Errorf("%s: id %q and %q, body %q", body, e.ID, again.ID, e.Body)
		}
		ids[e.ID] = true
	}
}

func TestWhatIsNoEventIsRefusedAlsoWhenItIsSigned(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	deep := func(n int) string {
		return `{"id":"evt_1","data":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for name, body := range map[string]string{
		"empty": "", "no JSON": "payload=1", "cut": plainEvent[:40], "two documents": plainEvent + plainEvent,
		"a list": "[" + plainEvent + "]", "a text": `"evt_1"`, "null": "null", "a raw NUL": "{\"id\":\"evt_1\x00\"}",
		"deep": deep(100), "very deep": strings.Repeat("[", 1<<20), "a mode that is none": `{"id":"evt_1","livemode":"yes"}`,
	} {
		if _, err := src.Verify(signed(now, []byte(body), hookSecret), []byte(body), now); why(err) != sources.NotReadable {
			t.Errorf("%s: %v", name, err)
		}
	}
	quoted := `{"id":"evt_1","d":"` + strings.Repeat("[{", 200) + `\"[[["}`
	for _, body := range []string{`{"id":"evt_1","d":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, quoted} {
		if _, err := src.Verify(signed(now, []byte(body), hookSecret), []byte(body), now); err != nil {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}
