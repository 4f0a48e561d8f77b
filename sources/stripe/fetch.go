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
	after  string    // id of the last object of the page before
	limit  int
}

const kindEvent = "event"

// endpoints are the paths of the kinds.
var endpoints = map[string]string{
	kindRefund:        "/v1/refunds",
	kindCharge:        "/v1/charges",
	kindPaymentIntent: "/v1/payment_intents",
	kindEvent:         "/v1/events",
}

// send makes one request. The fault is what Stripe or the way to it did; the error is
// the end of the caller's context, and then nothing was learned.
func (s *Source) send(ctx context.Context, endpoint string, want shape, call func(context.Context) error) (*exchange, *sources.Error, error) {
	ex := &exchange{want: want}
	if err := ctx.Err(); err != nil {
		return ex, nil, err
	}
	if err := s.limiter.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return ex, nil, ctx.Err()
		}
		// The wait would outlast the caller's deadline.
		return ex, s.fault(endpoint, sources.RateLimited, errors.New("our own budget of requests is used up")), nil
	}
	bounded, cancel := context.WithTimeout(withExchange(ctx, ex), s.timeout)
	defer cancel()
	err := call(bounded)
	if ctx.Err() != nil {
		return ex, nil, ctx.Err()
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

// page asks for one page of a list.
func (s *Source) page(ctx context.Context, l listing) (*exchange, *sources.Error, error) {
	return s.send(ctx, "GET "+endpoints[l.kind], wantPage, func(ctx context.Context) error {
		params := stripego.ListParams{
			Single: true, Limit: stripego.Int64(int64(l.limit)), StripeAccount: l.place.header,
			StartingAfter: optional(l.after),
		}
		created := l.created()
		filter := func(name string) *string {
			if l.filter != name {
				return nil
			}
			return optional(l.parent)
		}
		api := l.place.api
		switch l.kind {
		case kindRefund:
			return drain(api.V1Refunds.List(ctx, &stripego.RefundListParams{
				ListParams: params, CreatedRange: created,
				Charge: filter("charge"), PaymentIntent: filter("payment_intent"),
			}))
		case kindCharge:
			return drain(api.V1Charges.List(ctx, &stripego.ChargeListParams{
				ListParams: params, CreatedRange: created,
				PaymentIntent: filter("payment_intent"), Customer: filter("customer"),
			}))
		case kindPaymentIntent:
			return drain(api.V1PaymentIntents.List(ctx, &stripego.PaymentIntentListParams{
				ListParams: params, CreatedRange: created, Customer: filter("customer"),
			}))
		}
		return drain(api.V1Events.List(ctx, &stripego.EventListParams{
			ListParams: params, CreatedRange: created, Types: stripego.StringSlice(l.types),
		}))
	})
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
	return s.send(ctx, "GET "+endpoints[kind]+"/{id}", wantObject, func(ctx context.Context) error {
		params := stripego.Params{StripeAccount: p.header}
		var err error
		switch kind {
		case kindRefund:
			_, err = p.api.V1Refunds.Retrieve(ctx, id, &stripego.RefundRetrieveParams{Params: params})
		case kindCharge:
			_, err = p.api.V1Charges.Retrieve(ctx, id, &stripego.ChargeRetrieveParams{Params: params})
		default:
			_, err = p.api.V1PaymentIntents.Retrieve(ctx, id, &stripego.PaymentIntentRetrieveParams{Params: params})
		}
		return err
	})
}

// search asks the index of payment intents or charges for one page.
func (s *Source) search(ctx context.Context, p *place, kind, query string) (*exchange, *sources.Error, error) {
	return s.send(ctx, "GET "+endpoints[kind]+"/search", wantPage, func(ctx context.Context) error {
		params := stripego.SearchParams{
			Single: true, Query: query, Limit: stripego.Int64(maxPage), StripeAccount: p.header,
		}
		if kind == kindCharge {
			return drain(p.api.V1Charges.Search(ctx, &stripego.ChargeSearchParams{SearchParams: params}))
		}
		return drain(p.api.V1PaymentIntents.Search(ctx, &stripego.PaymentIntentSearchParams{SearchParams: params}))
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
