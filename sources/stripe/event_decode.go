package stripe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// previews are the types of events that show what does not exist yet.
var previews = []string{"invoice.upcoming"}

// deletions are the types of events after which their object is no longer there, though
// they show it as it was.
var deletions = []string{"customer.deleted", "invoice.deleted"}

// Decode says what an event shows. An object that the event carries whole is the same
// effect as if it had been read at that moment; one of which a field is missing, as
// other API versions have it, and the object of a thin event, are hints to read them. An
// event of another account or mode than the source's, of a type that is not known, or
// about a kind that the source does not observe, shows nothing.
//
// One change of a refund comes under up to three names: refund.created (or updated),
// charge.refund.updated and charge.refunded. The first two show the same effect. The
// third shows the refunds that old versions put into the charge, and is else a hint to
// list them: that it carries none never says that there are none.
func (s *Source) Decode(e recon.Event) (sources.Shown, error) {
	d := decoding{Source: s, place: s.place(e.Account, e.Mode), typ: e.Type}
	if d.place == nil {
		return sources.Shown{}, nil
	}
	if deeper(e.Body, maxDepth) || json.Unmarshal(e.Body, &d.event) != nil {
		return sources.Shown{}, fmt.Errorf("%s: event %s: the stored body is not the JSON of an event", s.name, e.ID)
	}
	if err := d.decode(); err != nil {
		return sources.Shown{}, fmt.Errorf("%s: event %s of type %s: %w", s.name, e.ID, e.Type, err)
	}
	if !e.Signed {
		d.distrust()
	}
	return d.shown, nil
}

// decoding is the state of one Decode.
type decoding struct {
	*Source
	place *place
	typ   string
	event event
	shown sources.Shown
}

func (d *decoding) decode() error {
	if kind, ok := ourKind(string(d.event.Related.Type)); ok {
		return d.hint(kind, string(d.event.Related.ID), "", "")
	}
	kind, ok := ourKind(string(d.event.Data.Object.Object))
	begins := func(prefix string) bool { return strings.HasPrefix(d.typ, prefix) }
	switch {
	case !ok, !slices.ContainsFunc(kinds[kind].told, begins), slices.Contains(previews, d.typ):
		return nil
	case slices.Contains(deletions, d.typ):
		return d.hintAt(kind, d.event.Data.Object.raw, "")
	}
	return d.object(kind, d.event.Data.Object.raw)
}

// object takes the object of the event, and what old versions put into it.
func (d *decoding) object(kind string, raw json.RawMessage) error {
	var key string
	if slices.Contains(kinds[kind].made, d.typ) {
		key = d.event.Request.Key // any later change bears the key of its own request
	}
	if err := d.take(kind, raw, key); err != nil {
		return err
	}
	switch kind {
	case kindPaymentIntent:
		d.children(kindCharge, raw, "charges")
	case kindCharge:
		d.children(kindRefund, raw, "refunds")
		if d.typ == "charge.refunded" {
			d.hintRefunds(raw)
		}
	}
	return nil
}

// take shows an object, or hints at it where it is not whole.
func (d *decoding) take(kind string, raw json.RawMessage, key string) error {
	o, err := readObject(kind, raw)
	if err != nil || !eventIDs.MatchString(o.ID) || lacks(kind, raw) {
		return d.hintAt(kind, raw, key)
	}
	if o.wrongMode(d.place.mode) {
		return fmt.Errorf("the %s is of another mode than its event", kind)
	}
	effect := d.effectOf(d.place, o)
	effect.Key = key
	d.shown.Effects = append(d.shown.Effects, effect)
	d.shown.Raw = append(d.shown.Raw, sources.Raw{Effect: effect.Identity(), Bytes: o.reduced(d.marker)})
	return nil
}

// lacks reports whether a field that we keep is absent.
func lacks(kind string, raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return true
	}
	return slices.ContainsFunc(kinds[kind].needed, func(names string) bool {
		for name := range strings.SplitSeq(names, "|") {
			if fields[name] != nil {
				return false
			}
		}
		return true
	})
}

// hintAt names an object that the event does not show whole, with what it does say.
func (d *decoding) hintAt(kind string, raw json.RawMessage, key string) error {
	var seen struct {
		ID       text                       `json:"id"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &seen) // what it does not have is missing in the hint
	return d.hint(kind, string(seen.ID), object{Metadata: seen.Metadata}.reference(d.marker), key)
}

func (d *decoding) hint(kind, id, reference, key string) error {
	if !eventIDs.MatchString(id) {
		return fmt.Errorf("the %s has no id", kind)
	}
	d.shown.Hints = append(d.shown.Hints, sources.Hint{
		Kind: kind, Account: d.place.account, Mode: d.place.mode, ID: id, Reference: reference, Key: key,
	})
	return nil
}

// embedded is a list inside of an object.
type embedded struct {
	HasMore bool              `json:"has_more"`
	Data    []json.RawMessage `json:"data"`
}

func listIn(raw json.RawMessage, field string) embedded {
	var fields map[string]json.RawMessage
	var list embedded
	if json.Unmarshal(raw, &fields) == nil && json.Unmarshal(fields[field], &list) != nil {
		return embedded{} // absent or null
	}
	return list
}

// children takes the objects of a list that old versions put into their parent.
func (d *decoding) children(kind string, raw json.RawMessage, field string) {
	for _, child := range listIn(raw, field).Data {
		// The event is about the parent. A child that says nothing is missing in the sum of
		// the refunds, and a charge has events of its own.
		_ = d.take(kind, child, "")
	}
}

// hintRefunds names the refunds of a refunded charge by their parent, unless the event
// itself holds all of them: then they add up to what the charge says.
func (d *decoding) hintRefunds(raw json.RawMessage) {
	var charge struct {
		ID       string `json:"id"`
		Refunded int64  `json:"amount_refunded"`
	}
	if json.Unmarshal(raw, &charge) != nil || !eventIDs.MatchString(charge.ID) {
		return
	}
	list := listIn(raw, "refunds")
	var sum int64
	for _, e := range d.shown.Effects {
		if e.Kind == kindRefund && e.Status.Live() {
			sum += e.Money.Minor
		}
	}
	if len(list.Data) > 0 && !list.HasMore && sum == charge.Refunded {
		return
	}
	d.shown.Hints = append(d.shown.Hints, sources.Hint{
		Kind: kindRefund, Account: d.place.account, Mode: d.place.mode, Parent: charge.ID, Key: d.event.Request.Key,
	})
}

// distrust turns what an event that nobody vouches for shows into hints.
func (d *decoding) distrust() {
	for _, e := range d.shown.Effects {
		d.shown.Hints = append(d.shown.Hints, sources.Hint{
			Kind: e.Kind, Account: e.Account, Mode: e.Mode, ID: e.ID, Reference: e.Reference, Key: e.Key,
		})
	}
	d.shown.Effects, d.shown.Raw = nil, nil
}
