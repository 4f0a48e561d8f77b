package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// maxBody bounds one reply.
	maxBody = 8 << 20
	// defaultQuiet is how long we keep silent after a 429 that names no time; maxQuiet
	// bounds what a reply may ask for.
	defaultQuiet = 5 * time.Second
	maxQuiet     = 2 * time.Minute
)

var (
	errWrite    = errors.New("a source only reads: this transport refuses every method but GET")
	errTooLarge = errors.New("the reply is larger than 8 MiB")
	errCut      = errors.New("the reply was cut off")
	errJSON     = errors.New("the reply is not JSON; a proxy or a page for people may have answered")
	requestIDs  = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)
)

// wire is the last gate before the network: what is not a GET is refused here, whatever
// the configuration or the code above came to ask for.
type wire struct{ next http.RoundTripper }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Body != nil {
		return nil, errWrite
	}
	return w.next.RoundTrip(r)
}

// noRedirect keeps a redirect as the reply that it is: following one would take the
// credentials elsewhere, and what answers there is not the API.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = requestTimeout
	return t
}

// reply is what one request brought.
type reply struct {
	address string // that was asked
	sent    bool
	status  int // 0: no reply
	header  http.Header
	body    []byte
	value   any // of a body that is JSON
}

func (r *reply) code() string {
	if r.status == 0 {
		return "none"
	}
	return strconv.Itoa(r.status)
}

func (r *reply) requestID(header string) string {
	if id := r.header.Get(header); header != "" && requestIDs.MatchString(id) {
		return id
	}
	return ""
}

// decode reads the body as one JSON value, numbers as they are written.
func (r *reply) decode() error {
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return errJSON
	}
	if _, err := d.Token(); err != io.EOF {
		return errJSON
	}
	r.value = v
	return nil
}

func readBounded(r io.ReadCloser) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if closed := r.Close(); err == nil {
		err = closed
	}
	switch {
	case isTimeout(err) || errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, errCut
	case len(body) > maxBody:
		return nil, errTooLarge
	}
	return body, nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// unreached tells why a request brought no whole reply. Go's own errors are not kept:
// they hold whole addresses.
func unreached(err error) (sources.Kind, error) {
	var dns *net.DNSError
	switch {
	case isTimeout(err):
		return sources.Timeout, errors.New("no answer in time")
	case errors.Is(err, errWrite):
		return sources.OwnBug, errWrite
	case errors.Is(err, errCut):
		return sources.Truncated, errCut
	case errors.Is(err, errTooLarge):
		return sources.Malformed, errTooLarge
	case errors.As(err, &dns):
		return sources.Unavailable, errors.New("the host of api_url is not known; check the name and the resolver")
	}
	return sources.Unavailable, errors.New("the connection was refused or broke off")
}

// judge tells what a status means that no look-up declares as "not found", nil for 200.
func judge(status int) (sources.Kind, error) {
	told := func(hint string) error {
		return errors.New("HTTP " + strconv.Itoa(status) + hint)
	}
	switch {
	case status == http.StatusOK:
		return "", nil
	case status == http.StatusTooManyRequests:
		return sources.RateLimited, told("")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return sources.BadCredentials, told("; check auth, and what its credentials may read")
	case status == http.StatusRequestTimeout || status >= 500:
		return sources.Unavailable, told("")
	case status >= 300 && status < 400:
		return sources.Malformed, told(", a redirect; it is not followed, write the final address into api_url")
	case status < 300:
		return sources.Malformed, told(", where 200 is expected")
	case status == http.StatusNotFound:
		return sources.OwnBug, told("; nothing says that this means \"not there\": check the path, or declare it under not_found")
	}
	return sources.OwnBug, told("; the provider refuses the request: check path and query")
}

// retryAfter is for how long a reply asks for silence, bounded.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	wait := defaultQuiet
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, time.Second), maxQuiet)
}
