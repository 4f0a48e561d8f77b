package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// errNotThere is a reply that is declared to mean "not there".
var errNotThere = errors.New("not there")

// begin is the position of a look-up's first page.
func (e *endpoint) begin() position {
	if e.paging == nil {
		return position{}
	}
	return position{Size: e.paging.size}
}

// request is one page of a look-up.
type request struct {
	place    *place
	kind     *kind
	endpoint *endpoint
	vars     vars
	at       position
	bounds   url.Values
}

// get makes one request. The fault is what the provider or the way to it did; a declared
// "not found" is a fault whose cause is errNotThere. The error is the end of the caller's
// context, and then nothing was learned.
func (s *Source) get(ctx context.Context, q request) (*reply, *sources.Error, error) {
	name, e := "GET "+q.kind.name+" "+q.endpoint.name, q.endpoint
	base, query, err := e.address(s.settings.APIURL, q.vars)
	if err != nil {
		return &reply{}, s.fault(name, sources.Unsupported, err), nil
	}
	if q.at.Token != "" && (e.paging.style == styleURL || e.paging.style == styleLink) {
		next, err := sameHost(q.at.Token, base) // it may have been stored long ago
		if err != nil {
			return &reply{}, s.fault(name, sources.Malformed, err), nil
		}
		return s.send(ctx, q.place, e, name, next)
	}
	maps.Copy(query, q.bounds)
	if e.paging != nil {
		e.paging.ask(query, q.at)
	}
	return s.send(ctx, q.place, e, name, withQuery(base, query))
}

func withQuery(base string, query url.Values) string {
	if len(query) == 0 {
		return base
	}
	return base + "?" + query.Encode()
}

// send makes one request and reads its reply.
func (s *Source) send(ctx context.Context, p *place, e *endpoint, name, address string) (*reply, *sources.Error, error) {
	r := &reply{address: address}
	if err := over(ctx); err != nil {
		return r, nil, err
	}
	if err := s.limiter.Wait(ctx); err != nil {
		if end := over(ctx); end != nil {
			return r, nil, end
		}
		return r, s.fault(name, sources.RateLimited, errors.New("our own budget of requests is used up")), nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	kind, cause := s.exchange(bounded, p, address, r)
	if end := over(ctx); end != nil {
		return r, nil, end
	}
	if cause == nil {
		kind, cause = e.understand(r)
	}
	s.onRequest(name, r.code())
	if cause == nil {
		return r, nil, nil
	}
	fault := s.fault(name, kind, cause)
	fault.RequestID = r.requestID(s.settings.RequestID)
	switch kind {
	case sources.RateLimited:
		fault.RetryAfter = retryAfter(r.header, time.Now())
	case sources.BadCredentials:
		p.credentials.refused()
	}
	return r, fault, nil
}

// exchange sends a request and reads its whole reply.
func (s *Source) exchange(ctx context.Context, p *place, address string, r *reply) (sources.Kind, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return sources.OwnBug, errors.New("the address cannot be read; check api_url and path")
	}
	req.Header.Set("Accept", "application/json")
	for name, value := range s.settings.Headers {
		req.Header.Set(name, value)
	}
	if kind, err := p.credentials.sign(ctx, req); err != nil {
		return kind, err
	}
	r.sent = true
	resp, err := s.client.Do(req)
	if err != nil {
		return unreached(err)
	}
	r.body, err = readBounded(resp.Body)
	r.status, r.header = resp.StatusCode, resp.Header
	if err != nil {
		return unreached(err)
	}
	return "", nil
}

// understand holds a whole reply against what the look-up declares.
func (e *endpoint) understand(r *reply) (sources.Kind, error) {
	notJSON := r.decode()
	if e.notFound.means(r) {
		return "", errNotThere
	}
	if kind, err := judge(r.status); err != nil {
		return kind, err
	}
	if notJSON != nil {
		return sources.Malformed, notJSON
	}
	if e.success == nil {
		return "", nil
	}
	if text, err := e.success.path.text(r.value); err != nil || text != e.success.text {
		return sources.Malformed, errors.New("the reply says that it is no answer; it does not hold what success names")
	}
	return "", nil
}

// over gives the end of a context, also where its deadline has passed and its timer has
// not said so yet: a dial that was given up for it is no fault of the provider's.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if at, bound := ctx.Deadline(); bound && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}
