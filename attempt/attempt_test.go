package attempt_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
)

// client has a transport of its own, so that no test meets another's kept connections.
func client(t *testing.T) *http.Client {
	t.Helper()
	next := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(next.CloseIdleConnections)
	return &http.Client{Transport: &attempt.Transport{Next: next}}
}

func post(ctx context.Context, t *testing.T, c *http.Client, url, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body, req.GetBody = nil, nil
	}
	req.Header.Set("Idempotency-Key", "k-1")
	resp, err := c.Do(req)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

// dying answers the first request of a connection and closes it at the second, before
// the first byte, which is when net/http would send again.
func dying(t *testing.T) (url string, keys *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	keys = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveOnce(conn, keys)
		}
	}()
	return "http://" + listener.Addr().String(), keys
}

func serveOnce(conn net.Conn, keys *atomic.Int32) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for n := range 2 {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if req.Header.Get("Idempotency-Key") == "k-1" && req.Method == http.MethodPost {
			keys.Add(1)
		}
		if n == 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
}

// warm leaves a connection that is used again.
func warm(t *testing.T, c *http.Client, url string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // an unread connection is not kept
	resp.Body.Close()
}

func TestADyingConnectionDoesNotMakeASecondRequest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"with a body": "amount=1", "without a body": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, keys := dying(t)
			c := client(t)
			warm(t, c, url)
			ctx, x := attempt.Begin(t.Context(), nil)
			if _, err := post(ctx, t, c, url, body); err == nil {
				t.Error("a lost answer was taken for one")
			}
			if n := keys.Load(); n != 1 {
				t.Errorf("%d requests reached the server, want 1", n)
			}
			if r := x.Reply(); !r.Seen || r.Unwritten || r.Answered() || r.Err == nil {
				t.Errorf("reply %+v: a request that was written and has no answer", r)
			}
		})
	}
}

func TestNetHTTPByItselfWouldSendTwice(t *testing.T) {
	t.Parallel()
	url, keys := dying(t)
	next := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(next.CloseIdleConnections)
	c := &http.Client{Transport: next}
	warm(t, c, url)
	_, _ = post(t.Context(), t, c, url, "amount=1")
	if n := keys.Load(); n != 2 {
		t.Errorf("%d requests, want 2: if net/http no longer does this, Transport need not prevent it", n)
	}
}

func TestOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(srv.Close)
	c := client(t)
	ctx, x := attempt.Begin(t.Context(), nil)
	if _, err := post(ctx, t, c, srv.URL, "a=1"); !errors.Is(err, attempt.ErrSecond) {
		t.Errorf("following a redirect: %v, want %v", err, attempt.ErrSecond)
	}
	if _, err := post(ctx, t, c, srv.URL, "a=1"); !errors.Is(err, attempt.ErrSecond) {
		t.Errorf("sending again: %v, want %v", err, attempt.ErrSecond)
	}
	if r := x.Reply(); hits.Load() != 1 || r.Status != http.StatusTemporaryRedirect {
		t.Errorf("%d requests, status %d: want the first answer to stay", hits.Load(), r.Status)
	}
	if _, err := post(t.Context(), t, c, srv.URL, "a=1"); !errors.Is(err, attempt.ErrOutside) || hits.Load() != 1 {
		t.Errorf("a write outside of an attempt: %v", err)
	}
}

func TestWhatIsKnownOfARequest(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/full":
			w.Header().Set("Request-Id", "req_1")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "whole")
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
		case "/never":
			_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client leaves
			<-r.Context().Done()
		}
	}))
	t.Cleanup(srv.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	forbidden := errors.New("no")
	for name, test := range map[string]struct {
		url   string
		check attempt.Check
		limit time.Duration
		is    error
		want  attempt.Reply
	}{
		"a whole answer":            {url: srv.URL + "/full", want: attempt.Reply{Seen: true, Status: 418, Body: []byte("whole")}},
		"an answer that breaks off": {url: srv.URL + "/cut", is: attempt.ErrCut, want: attempt.Reply{Seen: true, Status: 200, Body: []byte("half")}},
		"no answer in time":         {url: srv.URL + "/never", limit: 50 * time.Millisecond, is: context.DeadlineExceeded, want: attempt.Reply{Seen: true}},
		"nobody listens":            {url: nobody, want: attempt.Reply{Seen: true, Unwritten: true}},
		"a name that is not known":  {url: "http://no-such-host.invalid", want: attempt.Reply{Seen: true, Unwritten: true}},
		"a check that says no": {url: srv.URL + "/full", check: func(*http.Request, []byte) error { return forbidden },
			is: forbidden, want: attempt.Reply{Seen: true, Refused: forbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := attempt.Begin(t.Context(), test.check)
			if test.limit > 0 {
				limited, cancel := context.WithTimeout(ctx, test.limit)
				defer cancel()
				ctx = limited
			}
			_, err := post(ctx, t, client(t), test.url, "a=1")
			r := x.Reply()
			if r.Seen != test.want.Seen || r.Refused != test.want.Refused || r.Unwritten != test.want.Unwritten ||
				r.Status != test.want.Status || string(r.Body) != string(test.want.Body) {
				t.Errorf("reply %+v, want %+v", r, test.want)
			}
			if r.Answered() != (err == nil) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("answered %v, error %v, want %v", r.Answered(), err, test.is)
			}
		})
	}
	if _, x := attempt.Begin(t.Context(), nil); x.Reply().Seen {
		t.Error("a request was seen that nobody made")
	}
}

// other is a transport that tells nothing about connections.
type other struct{ err error }

func (o other) RoundTrip(*http.Request) (*http.Response, error) { return nil, o.err }

func TestAForeignTransportIsTrustedOnlyWhereItsErrorSaysThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a dial that was refused": {&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		"a name":                  {&net.DNSError{}, true},
		"a read that failed":      {&net.OpError{Op: "read", Err: errors.New("reset")}, false},
		"anything else":           {io.EOF, false},
	} {
		ctx, x := attempt.Begin(t.Context(), nil)
		c := &http.Client{Transport: &attempt.Transport{Next: other{test.err}}}
		_, _ = post(ctx, t, c, "http://127.0.0.1:1", "a=1")
		if got := x.Reply().Unwritten; got != test.want {
			t.Errorf("%s: unwritten %v, want %v", name, got, test.want)
		}
	}
}
