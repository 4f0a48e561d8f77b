package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
)

const (
	maxRequest = 8 << 20
	maxReply   = 8 << 20
)

// Transport sends the request of an attempt once. Requests outside of an attempt pass
// when they only read, and are refused otherwise.
type Transport struct {
	// Next is what really sends; nil is [http.DefaultTransport].
	Next http.RoundTripper
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip sends the request if it is the first of its attempt.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.Next
	if next == nil {
		next = http.DefaultTransport
	}
	x, ok := req.Context().Value(exchangeKey{}).(*Exchange)
	if !ok && (req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == "") {
		return next.RoundTrip(req)
	}
	body, err := readBody(req)
	switch {
	case !ok:
		return nil, ErrOutside
	case !x.take():
		return nil, ErrSecond
	case err == nil && x.check != nil:
		err = x.check(req, body)
	}
	if err != nil {
		x.change(func(r *Reply) { r.Refused = err })
		return nil, err
	}
	return x.send(next, req, body)
}

func (x *Exchange) send(next http.RoundTripper, req *http.Request, body []byte) (*http.Response, error) {
	written := false
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.change(func(*Reply) { written = true }) },
	})
	resp, err := next.RoundTrip(once(req.Clone(ctx), body))
	if err != nil {
		_, standard := next.(*http.Transport)
		x.change(func(r *Reply) { r.Err, r.Unwritten = err, !written && (standard || isDial(err)) })
		return nil, err
	}
	answer, err := readReply(resp.Body)
	x.change(func(r *Reply) { r.Status, r.Header, r.Body, r.Err = resp.StatusCode, resp.Header, answer, err })
	if err != nil {
		return nil, err // half of an answer must not be taken for one
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// once makes a request that net/http does not send a second time by itself. It would, on
// a kept connection that dies, for a request that has an idempotency key and a body that
// it can get again, or none.
func once(req *http.Request, body []byte) *http.Request {
	req.GetBody = nil
	if len(body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return req
	}
	req.Body, req.ContentLength = nil, 0
	// Without a body only the header's name tells net/http that it may. It looks for the
	// usual spelling; to a server the case of a header's name means nothing.
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := req.Header[name]; ok {
			delete(req.Header, name)
			req.Header[strings.ToLower(name)] = values
		}
	}
	return req
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequest+1))
	if closed := req.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && len(body) > maxRequest {
		err = fmt.Errorf("the request is larger than %d bytes", maxRequest)
	}
	return body, err
}

func readReply(r io.ReadCloser) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxReply+1))
	if closed := r.Close(); err == nil {
		err = closed
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return body, err
	case err != nil:
		return body, ErrCut
	case len(body) > maxReply:
		return body[:maxReply], ErrTooLarge
	}
	return body, nil
}

// isDial reports that no connection was made, for transports that tell nothing else.
func isDial(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}
