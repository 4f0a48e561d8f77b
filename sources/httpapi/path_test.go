package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

func TestPaths(t *testing.T) {
	var v any
	d := json.NewDecoder(strings.NewReader(`{"a":{"b":[{"c":1.50},{"c":"x"}]},"a.b":true,"f":[{"n":"other","v":"no"},{"n":"ref","v":"op-1"}],"null":null}`))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.b[0].c": "1.50", "a.b[1].c": "x", `["a.b"]`: "true", "f[n=ref].v": "op-1", "f[n=none].v": "", "null": "", "null.deep[3]": "", "a.b[9]": "", "gone": "",
	} {
		p, err := httpapi.ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := p.Text(v); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"a.b", "a[0]", "f.n", "a.b[0].c.d", "."} {
		p, err := httpapi.ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := p.Text(v); err == nil {
			t.Errorf("%s is %q, want an error: it is no text", path, got)
		}
	}
	for _, path := range []string{"", "..", "a.", ".a", "a[", "a[x]", "a[-1]", "a[]", "a[=x]", "a[b=]", `["`, `[""]`, "a]", "a[0]b", "a[99999999]"} {
		if _, err := httpapi.ParsePath(path); err == nil {
			t.Errorf("%q is taken for a path", path)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("a.b[0].c", `{"a":{"b":[{"c":1}]}}`)
	f.Add(`["a.b"][n=x].v`, `{"a.b":[{"n":"x","v":null}]}`)
	f.Fuzz(func(t *testing.T, path, doc string) {
		p, err := httpapi.ParsePath(path)
		var v any
		if err != nil || json.Unmarshal([]byte(doc), &v) != nil {
			return
		}
		first, firstErr := p.Text(v)
		again, againErr := p.Text(v)
		if first != again || (firstErr == nil) != (againErr == nil) {
			t.Errorf("%q of %s is %q and then %q", path, doc, first, again)
		}
	})
}

// tokenServer exchanges client credentials and counts.
func tokenServer(t *testing.T, status *int, given *int) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Method != http.MethodPost || r.FormValue("grant_type") != "client_credentials" || user != "id" || password != "TESTONLY_s%25" {
			*status = 401
		}
		w.WriteHeader(*status)
		*given++
		_, _ = w.Write([]byte(`{"access_token":"` + homeToken + `","token_type":"Bearer","expires_in":3600}`)) // the client may be gone
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestClientCredentialsAreExchangedOnceAndAgainWhenRefused(t *testing.T) {
	status, given := 200, 0
	tokens := tokenServer(t, &status, &given)
	f := newFake(t, "cursor", func(s *httpapi.Settings) {
		s.Accounts = nil
		s.Account = "shop"
		s.Auth = httpapi.AuthSettings{TokenURL: tokens.URL, ClientID: "id", ClientSecret: recon.NewSecret("TESTONLY_s%")}
	})
	src := f.open(t, httpapi.Options{})
	ask := func(want string) {
		t.Helper()
		ans, err := src.Ask(t.Context(), []sources.Question{f.question(withID("ef_1"))}, f.Now)
		if err != nil || ans.Looks[0].Fault != want {
			t.Errorf("look is %q (%s) with %v, want %q", ans.Looks[0].Fault, ans.Looks[0].Detail, err, want)
		}
	}
	ask("")
	ask("")
	if given != 1 {
		t.Errorf("%d tokens were asked for, want 1", given)
	}
	f.Server.Break("401 unknown credentials", 0)
	ask("bad_credentials")
	f.Mend()
	ask("")
	if given != 2 {
		t.Errorf("%d tokens were asked for after a refusal, want 2", given)
	}
	for want, s := range map[string]int{"unavailable": 503, "bad_credentials": 400, "rate_limited": 429} {
		status = s
		src = f.open(t, httpapi.Options{})
		ask(want)
		f.Advance(time.Minute)
	}
}

func TestOtherCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		auth httpapi.AuthSettings
		want string
	}{
		"none":   {httpapi.AuthSettings{}, ""},
		"bearer": {httpapi.AuthSettings{Token: recon.NewSecret("t")}, "Authorization: Bearer t"},
		"header": {httpapi.AuthSettings{Header: "X-Token", Token: recon.NewSecret("t")}, "X-Token: t"},
		"prefix": {httpapi.AuthSettings{Header: "Authorization", Prefix: "token ", Token: recon.NewSecret("t")}, "Authorization: token t"},
		"basic":  {httpapi.AuthSettings{User: "u", Password: recon.NewSecret("p")}, "Authorization: Basic dTpw"},
	} {
		f := newFake(t, "cursor", func(s *httpapi.Settings) { s.Accounts, s.Account, s.Auth = nil, "shop", test.auth })
		var got string
		src := f.open(t, httpapi.Options{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			for _, h := range []string{"Authorization", "X-Token"} {
				if v := r.Header.Get(h); v != "" {
					got = h + ": " + v
				}
			}
			return f.RoundTrip(r)
		})})
		_ = src.Probe(t.Context()) // the fake refuses most of them
		if got != test.want {
			t.Errorf("%s: %q was sent, want %q", name, got, test.want)
		}
	}
}

// FuzzReply holds that no reply whatever brings an effect without id and time, or quotes
// itself in a message.
func FuzzReply(f *testing.F) {
	f.Add(`{"data":[{"id":"ef_1","created":"2026-03-02T09:00:00Z","state":"done","total":{"value":"1","currency":"EUR"}}],"page":{"next":null}}`)
	f.Add(`{"data":[],"page":{}}`)
	f.Add(`{"data":[{"id":7,"created":"2026-03-02T09:00:00Z","state":"done","total":{"value":-1e9,"currency":null}}]}`)
	f.Add(`<html>`)
	fake := &fake{style: "cursor"}
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
	f.Cleanup(srv.Close)
	fake.Server = &httpapitest.Server{Server: srv}
	src, err := httpapi.New("fuzz", fake.settings(), httpapi.Options{Transport: bare})
	if err != nil {
		f.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) }
	f.Fuzz(func(t *testing.T, reply string) {
		body = reply
		p, err := src.Page(t.Context(), sources.List{Kind: "payout", Account: home.Account, Mode: home.Mode},
			recon.Window{From: now().Add(-2 * time.Hour), To: now()}, "", now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Effects {
			if e.ID == "" || e.CreatedAt.IsZero() || !e.Status.Valid() || e.Money.Minor < 0 {
				t.Errorf("effect %+v", e)
			}
		}
		if p.Look.Outcome == recon.Blind && (len(p.Effects) > 0 || p.Next != "" || len(reply) > 40 && strings.Contains(p.Look.Detail, reply)) {
			t.Errorf("a blind page brings %d effects: %s", len(p.Effects), p.Look.Detail)
		}
	})
}
