package stripe

import (
	"context"
	"errors"
	"net/http"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// listing is one page to ask for. Every page of a list has the same filter; only after
// differs.
type listing struct {
	place  *place
	kind   string    // or kindEvent
	parent string    // refunds, charges and payment intents under it
	filter string    // the parameter that takes parent: charge, payment_intent, customer
	since  time.Time // created at or after; zero is no bound
	until  time.Time // created before; zero is no bound
	types  []string  // events
	expand []string  // ids to be shown as the objects that they name
	after  string    // id of the last object of the page before
	limit  int
}

// send makes one request. The fault is what Stripe or the way to it did; the error is
// the end of the caller's context, and then nothing was learned.
func (s *Source) send(ctx context.Context, endpoint string, want shape, call func(context.Context) error) (*exchange, *sources.Error, error) {
	ex := &exchange{want: want}
	if err := over(ctx); err != nil {
		return ex, nil, err
	}
	if err := s.limiter.Wait(ctx); err != nil {
		if end := over(ctx); end != nil {
			return ex, nil, end
		}
		// The wait would outlast the caller's deadline.
		return ex, s.fault(endpoint, sources.RateLimited, errors.New("our own budget of requests is used up")), nil
	}
	bounded, cancel := context.WithTimeout(withExchange(ctx, ex), s.timeout)
	defer cancel()
	err := call(bounded)
	if end := over(ctx); end != nil {
		return ex, nil, end
	}
	if err == nil && ex.status != http.StatusOK {
		err = errShape
	}
	if err == nil {
		s.onRequest(endpoint, ex.code())
		return ex, nil, nil
	}
	kind, cause := classify(ex, err)
	fault := s.fault(endpoint, kind, cause)
	fault.RequestID = ex.requestID()
	if kind == sources.RateLimited {
		fault.RetryAfter = retryAfter(ex.header)
	}
	if ex.status == 0 {
		s.onRequest(endpoint, string(kind))
	} else {
		s.onRequest(endpoint, ex.code())
	}
	return ex, fault, nil
}

// over gives the end of a context, also where its deadline has passed and its timer has
// not said so yet: a dial that was given up for it is no fault of Stripe's.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if at, bound := ctx.Deadline(); bound && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// page asks for one page of a list, or of the events.
func (s *Source) page(ctx context.Context, l listing) (*exchange, *sources.Error, error) {
	list := listEvents
	if l.kind != kindEvent {
		list = kinds[l.kind].list
	}
	return s.send(ctx, "GET "+pathOf(l.kind), wantPage, func(ctx context.Context) error {
		params := stripego.ListParams{
			Single: true, Limit: stripego.Int64(int64(l.limit)), StripeAccount: l.place.header, StartingAfter: optional(l.after),
		}
		for _, name := range l.expand {
			params.AddExpand("data." + name)
		}
		return list(ctx, l, params)
	})
}

// by gives the list's parent where this parameter takes it.
func (l listing) by(parameter string) *string {
	if l.filter != parameter {
		return nil
	}
	return optional(l.parent)
}

// created is the filter on the time of creation, in whole seconds.
func (l listing) created() *stripego.RangeQueryParams {
	if l.since.IsZero() {
		return nil
	}
	r := &stripego.RangeQueryParams{GreaterThanOrEqual: l.since.Unix()}
	if !l.until.IsZero() {
		r.LesserThan = l.until.Add(time.Second - 1).Unix() // rounded up: 9:00:00 lies before 9:00:00.5
	}
	return r
}

// one asks for one object by its id.
func (s *Source) one(ctx context.Context, p *place, kind, id string) (*exchange, *sources.Error, error) {
	return s.send(ctx, "GET "+pathOf(kind)+"/{id}", wantObject, func(ctx context.Context) error {
		return kinds[kind].one(ctx, p, id, stripego.Params{StripeAccount: p.header})
	})
}

// search asks the index of a kind for one page.
func (s *Source) search(ctx context.Context, p *place, kind, query string) (*exchange, *sources.Error, error) {
	return s.send(ctx, "GET "+pathOf(kind)+"/search", wantPage, func(ctx context.Context) error {
		return kinds[kind].search(ctx, p, stripego.SearchParams{
			Single: true, Query: query, Limit: stripego.Int64(maxPage), StripeAccount: p.header,
		})
	})
}

// self asks which account the key (and header) of a place opens.
func (s *Source) self(ctx context.Context, p *place) (*exchange, *sources.Error, error) {
	return s.send(ctx, "GET /v1/account", wantObject, func(ctx context.Context) error {
		_, err := p.api.V1Accounts.Retrieve(ctx, &stripego.AccountRetrieveParams{
			Params: stripego.Params{StripeAccount: p.header},
		})
		return err
	})
}

// drain reads the page of a list and gives its error, which stripe-go hands out as the
// last element: a loop that does not look at it takes half a list for a whole one.
func drain[T any](list stripego.Seq2[T, error]) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
