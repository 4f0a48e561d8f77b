package stripetest

import (
	"fmt"
	"maps"
	"net/http"
	"time"
)

// routes are all endpoints. Anything else is 404.
func (s *Server) routes() map[string]reader {
	return map[string]reader{
		"GET /v1/account":                       s.readAccount,
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

// resourceRoutes are the lists of the further kinds, and each of their objects. Only what
// the provider has an index for can be searched.
func (s *Server) resourceRoutes() map[string]reader {
	routes := map[string]reader{}
	for k, shape := range forms {
		routes["GET "+shape.path] = s.list(listing{k, shape.path, shape.lists})
		routes["GET "+shape.path+"/{id}"] = s.one(k)
	}
	routes["GET "+forms[subscriptionKind].path] = s.listSubscriptions
	for _, k := range []kind{customerKind, invoiceKind, subscriptionKind} {
		path := forms[k].path + "/search"
		routes["GET "+path] = s.search(listing{k, path, nil})
	}
	return routes
}

// listSubscriptions leaves out canceled ones unless a status is asked for.
func (s *Server) listSubscriptions(x *exchange) work {
	l := listing{subscriptionKind, forms[subscriptionKind].path, forms[subscriptionKind].lists}
	status := x.params.choice("status", "active", "all", "canceled", "ended", "incomplete", "incomplete_expired", "past_due", "paused", "trialing", "unpaid")
	q := x.params.query(l)
	q.leaves = func(o object) bool {
		switch is := o.ref("status"); status {
		case "all":
			return false
		case "":
			return is == "canceled"
		case "ended":
			return is != "canceled" && is != "incomplete_expired"
		default:
			return is != status
		}
	}
	return func(m moment) answer {
		q.at, q.lag = m.at, s.lag.List
		return s.answerPage(x, l, q)
	}
}

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	routes := s.routes()
	maps.Copy(routes, s.resourceRoutes())
	for endpoint, read := range routes {
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

// readAccount shows whose key it is, or the connected account that the header names.
func (s *Server) readAccount(x *exchange) work {
	x.params.expand(false)
	return func(moment) answer {
		return ok(s.fixtures.like("account", map[string]any{"id": x.place.account}))
	}
}

func (s *Server) readBalance(x *exchange) work {
	x.params.expand(false)
	return func(moment) answer {
		return ok(s.fixtures.like("balance", map[string]any{"livemode": x.place.live()}))
	}
}
