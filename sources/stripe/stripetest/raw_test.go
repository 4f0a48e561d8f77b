package stripetest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// raw is an answer as it came, for what the real client hides or never sends.
type raw struct {
	status int
	header http.Header
	body   []byte
	err    error // of sending, or of reading the body
}

// errorOf gives the provider's error in a raw answer.
func (r raw) errorOf(t *testing.T) (e struct{ Type, Code, Message, Param string }) {
	t.Helper()
	var body struct {
		Error struct{ Type, Code, Message, Param string }
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatalf("body %q: %v", r.body, err)
	}
	return body.Error
}

func post(t *testing.T, srv *stripetest.Server, apiKey, key, path, form string) raw {
	t.Helper()
	return send(t, srv, "POST", path, form, http.Header{"Authorization": {"Bearer " + apiKey}, "Idempotency-Key": {key}})
}

func get(t *testing.T, srv *stripetest.Server, apiKey, path string) raw {
	t.Helper()
	return send(t, srv, "GET", path, "", http.Header{"Authorization": {"Bearer " + apiKey}})
}

func send(t *testing.T, srv *stripetest.Server, method, path, form string, header http.Header) raw {
	t.Helper()
	return fetch(method, srv.URL()+path, form, header)
}

// fetch sends one request on a connection of its own.
func fetch(method, url, form string, header http.Header) raw {
	req, err := http.NewRequest(method, url, strings.NewReader(form))
	if err != nil {
		return raw{err: err}
	}
	req.Header = header
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return raw{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return raw{status: resp.StatusCode, header: resp.Header, body: body, err: err}
}
