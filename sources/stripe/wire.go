package stripe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds one reply. A full page of charges is about half a megabyte.
const maxBody = 8 << 20

var (
	errWrite    = errors.New("a source only reads: this transport refuses every method but GET")
	errTooLarge = fmt.Errorf("the reply is larger than %d bytes", maxBody)
	errCut      = errors.New("the reply was cut off")
	errShape    = errors.New("the reply is not what Stripe's API sends")
)

// shape is what a reply of status 200 must be.
type shape int

const (
	wantObject shape = iota
	wantPage
)

// exchange is one request as it went over the wire. stripe-go loses status and headers
// of replies that are not JSON, and has_more of every list; here they are kept.
type exchange struct {
	want   shape
	sent   bool // the request was handed to the network
	status int  // 0: no reply
	header http.Header
	body   []byte
	page   page // of a 200 where a page was wanted
}

// page is one page of a list, with its objects as they were sent.
type page struct {
	Object  string            `json:"object"`
	HasMore *bool             `json:"has_more"`
	Data    []json.RawMessage `json:"data"`
}

type exchangeKey struct{}

func withExchange(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// requestID is Stripe's name for the request, empty when it is not one.
func (ex *exchange) requestID() string {
	id := ex.header.Get("Request-Id")
	if !requestIDs.MatchString(id) {
		return ""
	}
	return id
}

// code is the metric label of the outcome: the status, or "none".
func (ex *exchange) code() string {
	if ex.status == 0 {
		return "none"
	}
	return strconv.Itoa(ex.status)
}

// wire is the transport under stripe-go. It is the last gate before the network: what
// is not a GET is refused here, whatever the code above came to call. It reads every
// reply whole and bounded, and rejects a 200 of the wrong shape before stripe-go can
// take {} for an object without id, or stumble over a null in a list.
type wire struct {
	next http.RoundTripper
}

func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return nil, errWrite
	}
	ex, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok || ex.sent {
		// One exchange is one request. A second one would be a retry or a redirect
		// that nobody here asked for.
		return nil, errors.New("a request outside of its exchange")
	}
	ex.sent = true
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := readBounded(resp.Body)
	ex.status, ex.header, ex.body = resp.StatusCode, resp.Header, body
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		if err := ex.check(); err != nil {
			return nil, err
		}
		if ex.want == wantPage {
			// stripe-go would refuse a whole page for one field that an API version has as
			// another type: its objects are read here, one by one.
			body = emptyPage
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func readBounded(r io.ReadCloser) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if closed := r.Close(); err == nil {
		err = closed
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return body, err
	case err != nil:
		return body, errCut
	case len(body) > maxBody:
		return body[:maxBody], errTooLarge
	}
	return body, nil
}

// emptyPage is what stripe-go gets to read of a page.
var emptyPage = []byte(`{"object":"list","has_more":false,"data":[]}`)

// check holds a 200 against the shape that was asked for.
func (ex *exchange) check() error {
	if ex.want == wantObject {
		var o struct {
			ID     string `json:"id"`
			Object string `json:"object"`
		}
		if json.Unmarshal(ex.body, &o) != nil || o.ID == "" || o.Object == "" {
			return errShape
		}
		return nil
	}
	if json.Unmarshal(ex.body, &ex.page) != nil {
		return errShape
	}
	p := ex.page
	if (p.Object != "list" && p.Object != "search_result") || p.HasMore == nil || p.Data == nil {
		return errShape
	}
	if *p.HasMore && len(p.Data) == 0 {
		return errShape // more is promised after nothing: the list cannot be followed
	}
	for _, item := range p.Data {
		if len(item) == 0 || item[0] != '{' {
			return errShape
		}
	}
	return nil
}

// noRedirect keeps a redirect as the reply that it is: nothing of Stripe's API
// redirects, and following one would take the key elsewhere.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newTransport is the default transport: Go's, with bounds of its own. Should a reused
// connection die before its first byte, net/http repeats a GET by itself; for reads
// that is harmless, and no other method gets this far.
func newTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 2
	t.ResponseHeaderTimeout = 60 * time.Second
	return t
}
