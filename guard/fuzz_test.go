package guard_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// FuzzAnyAnswer holds that only a whole answer which is JSON, says so and blames the caller
// is a definite no, and that an answer to a repeat refuses nothing of the first attempt.
func FuzzAnyAnswer(f *testing.F) {
	f.Add(402, "application/json", []byte(`{"error":{}}`), false)
	f.Add(400, "application/problem+json; charset=utf-8", []byte(`{}`), true)
	f.Add(422, "text/html", []byte(`<html>`), false)
	f.Add(400, "application/json", []byte(`{"error":`), false)
	f.Add(503, "application/json", []byte(`{}`), false)
	f.Add(429, "application/json;;", []byte(`{}`), false)
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte, inDoubt bool) {
		r := attempt.Reply{Seen: true, Status: status, Header: http.Header{"Content-Type": {kind}}, Body: body}
		class, row := guard.Standard().Class(r, inDoubt)
		switch class {
		case recon.ClassIndeterminate:
		case recon.ClassRefused, recon.ClassNotSent:
			if status < 400 || status > 499 || !json.Valid(body) || !strings.Contains(strings.ToLower(kind), "json") {
				t.Errorf("%d %s %q is %s by %s", status, kind, body, class, row)
			}
			if inDoubt && class == recon.ClassRefused {
				t.Errorf("%d refuses an earlier attempt by %s", status, row)
			}
		default:
			t.Errorf("%d %s %q is %s by %s", status, kind, body, class, row)
		}
	})
}
