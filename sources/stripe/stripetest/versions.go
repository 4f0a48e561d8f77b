package stripetest

// API versions by which the shape of an event differs. They begin with their date, and
// are compared as texts.
const (
	versionRequests     = "2017-05-25" // request became an object with the idempotency key
	versionNoLists      = "2022-11-15" // charges and payment intents no longer carry their children
	versionRefundEvents = "2024-10-28" // refund.* is made also for refunds of a charge
)

// shownIn renders an event in an API version.
func (e *Event) shownIn(f fixtures, version string) map[string]any {
	object := e.snapshot.show(f)
	if version < versionNoLists {
		e.addChildren(f, object)
	}
	shown := f.like("event", map[string]any{
		"id": e.ID, "api_version": version, "created": e.Created.Unix(), "livemode": e.Mode == "live", "type": e.Type, "pending_webhooks": len(e.owed),
		"data":    map[string]any{"object": object},
		"request": map[string]any{"id": orNull(e.RequestID), "idempotency_key": orNull(e.Key)},
	})
	if version < versionRequests {
		shown["request"] = orNull(e.RequestID)
	}
	if e.connected {
		shown["account"] = e.Account
	}
	return shown
}

// maxChildren is how many children an old object carries; has_more tells of the others.
const maxChildren = 10

// addChildren puts the list of children into their parent, as old versions have it.
func (e *Event) addChildren(f fixtures, object map[string]any) {
	field, parent := "refunds", "/v1/refunds?charge="
	switch e.snapshot.(type) {
	case *Charge:
	case *PaymentIntent:
		field, parent = "charges", "/v1/charges?payment_intent="
		delete(object, "latest_charge")
	default:
		return
	}
	data := make([]any, 0, len(e.children))
	for _, child := range e.children[:min(len(e.children), maxChildren)] {
		data = append(data, child.show(f))
	}
	object[field] = map[string]any{"object": "list", "data": data, "has_more": len(e.children) > maxChildren,
		"total_count": len(e.children), "url": parent + e.ObjectID}
}

// childrenOf gives copies of the refunds of a charge, or the charges of an intent, as
// they are now, newest first.
func childrenOf(p *place, o object) []object {
	var rows []*row
	switch o := o.(type) {
	case *Charge:
		rows = p.shelf(refundKind).narrow(map[string]string{"charge": o.ID}).sorted()
	case *PaymentIntent:
		rows = p.shelf(chargeKind).narrow(map[string]string{"payment_intent": o.ID}).sorted()
	}
	children := make([]object, len(rows))
	for i, r := range rows {
		children[len(rows)-1-i] = snapshot(r.object)
	}
	return children
}

// old reports whether anybody sees events in a version that carries children.
func (s *Server) old() bool {
	if s.opt.APIVersion < versionNoLists {
		return true
	}
	for _, h := range s.hooks {
		if h.spec.APIVersion < versionNoLists {
			return true
		}
	}
	return false
}
