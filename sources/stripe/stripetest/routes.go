package stripetest

import (
	"fmt"
	"net/http"
	"time"
)

// routes are all endpoints. Anything else is 404.
func (s *Server) routes() map[string]reader {
	return map[string]reader{
		"GET /v1/balance":                       s.readBalance,
		"GET /v1/balance_transactions":          s.list(listing{movementKind, "/v1/balance_transactions", []string{"source", "type", "currency"}}),
		"GET /v1/balance_transactions/{id}":     s.one(movementKind),
		"GET /v1/charges":                       s.list(listing{chargeKind, "/v1/charges", []string{"customer", "payment_intent"}}),
		"GET /v1/charges/{id}":                  s.one(chargeKind),
		"GET /v1/charges/search":                s.search(listing{chargeKind, "/v1/charges/search", nil}),
		"GET /v1/events":                        s.listEvents,
		"GET /v1/events/{id}":                   s.one(eventKind),
		"GET /v1/payment_intents":               s.list(listing{intentKind, "/v1/payment_intents", []string{"customer"}}),
		"GET /v1/payment_intents/{id}":          s.one(intentKind),
		"GET /v1/payment_intents/search":        s.search(listing{intentKind, "/v1/payment_intents/search", nil}),
		"GET /v1/refunds":                       s.list(listing{refundKind, "/v1/refunds", []string{"charge", "payment_intent"}}),
		"GET /v1/refunds/{id}":                  s.one(refundKind),
		"POST /v1/payment_intents":              s.createIntent,
		"POST /v1/payment_intents/{id}":         s.updateIntent,
		"POST /v1/payment_intents/{id}/cancel":  s.cancelIntent,
		"POST /v1/payment_intents/{id}/capture": s.captureIntent,
		"POST /v1/payment_intents/{id}/confirm": s.confirmIntent,
		"POST /v1/refunds":                      s.createRefund,
		"POST /v1/refunds/{id}":                 s.updateRefund,
		"POST /v1/refunds/{id}/cancel":          s.cancelRefund,
	}
}

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for endpoint, read := range s.routes() {
		mux.HandleFunc(endpoint, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, endpoint, read) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, "", unknownURL) })
	return mux
}

func unknownURL(x *exchange) work {
	x.params.fail(&apiError{Status: http.StatusNotFound, Type: invalidRequest,
		Message: fmt.Sprintf("Unrecognized request URL (%s: %s).", x.call.Method, x.call.Path)})
	return nil
}

// one reads an object by id. Another account's object, or one of the other mode, is
// not there; neither is one that the lag still hides.
func (s *Server) one(k kind) reader {
	return func(x *exchange) work {
		expand := x.params.expand(false)
		return func(m moment) answer {
			r := x.place.shelf(k).byID[x.target]
			lag := s.lag.Retrieve
			if k == eventKind {
				lag = s.lag.Events
			}
			if r == nil || r.at.Add(lag).After(m.at) || expired(k, r.at, m.at) {
				return missing(k, x.target, "id").answer()
			}
			return ok(s.view(x.place, r.object, expand))
		}
	}
}

// expired reports whether an object is older than what the provider keeps of its kind.
func expired(k kind, created, now time.Time) bool {
	return k == eventKind && now.Sub(created) > eventHistory
}

func (s *Server) readBalance(x *exchange) work {
	x.params.expand(false)
	return func(moment) answer {
		return ok(s.fixtures.like("balance", map[string]any{"livemode": x.place.live()}))
	}
}
