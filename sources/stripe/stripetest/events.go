package stripetest

import (
	"path"
	"time"
)

const maxEventTypes = 20

// listEvents serves the history of 30 days, by type (with *) or up to 20 types.
func (s *Server) listEvents(x *exchange) work {
	l := listing{kind: eventKind, url: "/v1/events"}
	delivered := x.params.choice("delivery_success", "true", "false")
	pattern, types := x.params.text("type"), x.params.many("types")
	switch {
	case pattern != "" && types != nil:
		x.params.fail(invalid("types", "You may only specify one of these parameters: type, types."))
	case len(types) > maxEventTypes:
		x.params.fail(invalid("types", "You may only specify up to %d event types.", maxEventTypes))
	case pattern != "":
		types = []string{pattern}
	}
	q := x.params.query(l)
	q.types, q.delivered = types, delivered
	return func(m moment) answer {
		q.at, q.lag = m.at, s.lag.Events
		oldest := m.at.Add(-eventHistory).Truncate(time.Second).Unix()
		if q.created.from == nil || *q.created.from < oldest {
			q.created.from = &oldest // only to read less: expired decides
		}
		return s.answerPage(x, l, q)
	}
}

// typeFits matches an event type with a filter such as "refund.*" or "*".
func typeFits(pattern, typ string) bool {
	fits, err := path.Match(pattern, typ)
	return err == nil && fits
}

// emit makes an event with a snapshot of the object as it is now.
func (s *Server) emit(p *place, typ string, o object, m moment) {
	e := &Event{
		ID: s.ids.next("evt_", p.account+p.mode+m.key), Account: p.account, Mode: p.mode, Type: typ, Created: m.at,
		ObjectID: o.id(), Key: m.key, RequestID: m.requestID,
		snapshot: snapshot(o), connected: p.platform != "", version: s.opt.APIVersion, owed: map[int]bool{},
	}
	if s.old() {
		e.children = childrenOf(p, o)
	}
	s.put(p, e)
	s.dispatch(p, e)
}

// snapshot copies an object. Metadata is replaced as a whole when it changes, so that
// the copy may share it.
func snapshot(o object) object {
	switch o := o.(type) {
	case *Refund:
		return new(*o)
	case *Charge:
		return new(*o)
	case *PaymentIntent:
		return new(*o)
	case *Resource:
		return new(*o)
	}
	return o
}
