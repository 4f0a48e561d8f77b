package guard_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// madeTicket reads the answer of a ticket system.
func madeTicket(body []byte) (string, recon.AttemptClass) {
	var t struct{ ID, State string }
	if json.Unmarshal(body, &t) != nil {
		return "", recon.ClassIndeterminate
	}
	if t.State == "queued" {
		return t.ID, recon.ClassAccepted
	}
	return t.ID, recon.ClassSucceeded
}

func TestWhatAnHTTPAnswerMeans(t *testing.T) {
	t.Parallel()
	const problem = `{"error":"no"}`
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	for name, test := range map[string]struct {
		status        int
		kind, body    string
		url           string
		first, repeat recon.AttemptClass
		code          string
	}{
		"made":                      {201, "application/json", `{"id":"t1"}`, "", recon.ClassSucceeded, recon.ClassSucceeded, ""},
		"taken on":                  {202, "application/json", `{"id":"t1","state":"queued"}`, "", recon.ClassAccepted, recon.ClassAccepted, ""},
		"a success without id":      {200, "application/json", `{}`, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "no_effect_named"},
		"a success that is a page":  {200, "text/html", `<html>`, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "no_effect_named"},
		"a success without a body":  {204, "", ``, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "no_effect_named"},
		"a success that is cut":     {200, "application/json", `cut`, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "no_answer_200"},
		"refused":                   {422, "application/problem+json", problem, "", recon.ClassRefused, recon.ClassNotSent, "refused_422"},
		"refused by a proxy's page": {404, "text/html", `<html>`, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_404"},
		"JSON in name only":         {400, "application/json", `<html>`, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_400"},
		"not let in":                {401, "application/json", problem, "", recon.ClassNotSent, recon.ClassNotSent, "not_let_in_401"},
		"too many":                  {429, "application/json", problem, "", recon.ClassNotSent, recon.ClassNotSent, "not_let_in_429"},
		"another one is running":    {409, "application/json", problem, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_409"},
		"timed out there":           {408, "application/json", problem, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_408"},
		"a server's fault":          {500, "application/json", problem, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_500"},
		"a redirect":                {307, "application/json", problem, "", recon.ClassIndeterminate, recon.ClassIndeterminate, "not_definite_307"},
		"nobody listens":            {0, "", "", nobody, recon.ClassNotSent, recon.ClassNotSent, "not_written"},
		"a scheme nobody speaks":    {0, "", "", "ftp://127.0.0.1", recon.ClassNotSent, recon.ClassNotSent, "not_written"},
		"the connection breaks":     {0, "", "", "", recon.ClassIndeterminate, recon.ClassIndeterminate, "no_answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hits atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hits.Add(1)
				if r.Header.Get("Idempotency-Key") != "k-1" || r.Method != http.MethodPost {
					t.Errorf("%s with key %q", r.Method, r.Header.Get("Idempotency-Key"))
				}
				if test.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", test.kind)
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("X-Request", "r-1")
				if test.body == "cut" {
					w.Header().Set("Content-Length", "100")
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer srv.Close()
			for inDoubt, want := range map[bool]recon.AttemptClass{false: test.first, true: test.repeat} {
				hits.Store(0)
				url := srv.URL
				if test.url != "" {
					url = test.url
				}
				req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				h := guard.HTTP{KeyHeader: "Idempotency-Key", RequestID: "X-Request", Made: madeTicket}
				got := h.Send(t.Context(), guard.Attempt{Key: "k-1", InDoubt: inDoubt}, req)
				if got.Class != want || got.ErrorCode != test.code {
					t.Errorf("in doubt %v: %s by %q, want %s by %q", inDoubt, got.Class, got.ErrorCode, want, test.code)
				}
				if test.status != 0 && got.RequestID != "r-1" {
					t.Errorf("request id %q", got.RequestID)
				}
				if test.url == "" && hits.Load() != 1 {
					t.Errorf("%d requests, want 1", hits.Load())
				}
			}
		})
	}
}

func TestADeadlineIsIndeterminate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client leaves
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	req, err := http.NewRequest(http.MethodPost, srv.URL, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	got := guard.HTTP{Made: madeTicket}.Send(ctx, guard.Attempt{Key: "k"}, req)
	if got.Class != recon.ClassIndeterminate {
		t.Errorf("report %+v", got)
	}
}

func TestACallersRowsComeFirst(t *testing.T) {
	t.Parallel()
	table := append(guard.Table{
		{Name: "stored", Fits: guard.Status(500), First: recon.ClassStoredError, Repeat: recon.ClassStoredError},
		{Name: "replayed", Fits: func(r attempt.Reply) bool { return r.Header.Get("Replayed") == "true" && guard.Status(400)(r) },
			First: recon.ClassRefused, Repeat: recon.ClassRefused},
	}, guard.Standard()...)
	kind := http.Header{"Content-Type": {"application/json"}}
	for name, test := range map[string]struct {
		reply attempt.Reply
		want  recon.AttemptClass
	}{
		"a row of theirs":    {attempt.Reply{Seen: true, Status: 500, Header: kind, Body: []byte(`{}`)}, recon.ClassStoredError},
		"a stored refusal":   {attempt.Reply{Seen: true, Status: 400, Header: http.Header{"Replayed": {"true"}}}, recon.ClassRefused},
		"a row of ours":      {attempt.Reply{Seen: true, Status: 400, Header: kind, Body: []byte(`{}`)}, recon.ClassNotSent},
		"nothing was seen":   {attempt.Reply{}, recon.ClassIndeterminate},
		"what nobody thinks": {attempt.Reply{Seen: true, Status: 999, Header: kind}, recon.ClassIndeterminate},
	} {
		if got, _ := table.Class(test.reply, true); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got, row := (guard.Table{}).Class(attempt.Reply{}, false); got != recon.ClassIndeterminate || row == "" {
		t.Errorf("an empty table: %s", got)
	}
}
