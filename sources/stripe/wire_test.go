package stripe

import (
	"net/http"
	"regexp"
	"testing"
	"time"
)

// FuzzReply holds the laws of reading replies: no panic, a page that passes can be
// followed, and an error's text is made of words only.
func FuzzReply(f *testing.F) {
	f.Add(404, []byte(`{"error":{"type":"invalid_request_error","code":"resource_missing","param":"id","message":"No such customer: jane@example.com"}}`))
	f.Add(200, []byte(`{"object":"list","has_more":true,"data":[{"id":"evt_1","object":"event","created":1772442000,"request":null,"data":{"object":{"id":"re_1"}}}]}`))
	f.Add(200, []byte(`{"object":"list","has_more":false,"data":[null]}`))
	f.Add(400, []byte(`{"error":{"type":"Jane","code":"jane@example.com","param":"metadata[Jane]"}}`))
	words := regexp.MustCompile(`^HTTP -?[0-9]+(, (type|code|param) [a-z0-9_\[\]]+)*(, not a reply of Stripe's API)?$`)
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if text := readReplyError(status, body).Error(); !words.MatchString(text) {
			t.Errorf("error text %q holds more than words", text)
		}
		ex := exchange{want: wantPage, status: 200, body: body}
		if ex.check() != nil {
			return
		}
		if *ex.page.HasMore && len(ex.page.Data) == 0 {
			t.Error("more is promised after nothing")
		}
		for _, raw := range ex.page.Data {
			if e, ok := readEvent(raw); ok && (e.ID == "" || e.Created < minTime) {
				t.Errorf("half an event was read: %+v", e)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7", "")
	f.Add("-1", "")
	f.Add("1e300", "")
	f.Add("NaN", "")
	f.Add("Mon, 02 Mar 2026 09:00:30 GMT", "Mon, 02 Mar 2026 09:00:00 GMT")
	f.Fuzz(func(t *testing.T, after, date string) {
		if d := retryAfter(http.Header{"Retry-After": {after}, "Date": {date}}); d < 0 || d > maxQuiet {
			t.Errorf("Retry-After %q makes us silent for %s", after, d)
		}
	})
}

func TestRetryAfterMayBeADate(t *testing.T) {
	t.Parallel()
	h := http.Header{"Retry-After": {"Mon, 02 Mar 2026 09:00:30 GMT"}, "Date": {"Mon, 02 Mar 2026 09:00:00 GMT"}}
	if d := retryAfter(h); d != 30*time.Second {
		t.Errorf("silent for %s, want the 30 s between the two dates of the reply", d)
	}
}
