package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// seen is one observation of an effect, and how much it is worth against an earlier
// one.
type seen struct {
	effect recon.Effect
	at     time.Time // when it was observed
	lookID string
	// read says that the provider's object itself was read. An event or a file row
	// tells what was so when it was written.
	read bool
}

// held is what the ledger has of an effect.
type held struct {
	effect recon.Effect
	seenAt time.Time
	role   recon.Role // of its link; empty while it has no owner
}

// merged is what becomes of a stored effect when it is seen again.
type merged struct {
	effect  recon.Effect // what to store
	write   bool         // the row changes
	replace bool         // and with the new observation, not only its needs_read
	before  map[string]any
	after   map[string]any // both set: the difference is kept in effect_changes
}

// merge is design's law of merging. A read or list replaces what was observed
// earlier. An event or a file row replaces only where it moves the status forward.
// What is equal in all that we keep changes nothing; any other observation is kept
// beside, and asks for the object to be read.
func merge(old held, now seen) merged {
	next := withUnsaid(normal(now.effect), old.effect, now.read)
	next.Owner = old.effect.Owner
	next.NeedsRead = old.effect.NeedsRead
	known := old.effect
	learned := known.Key == "" && next.Key != ""
	known.Key = cmp.Or(known.Key, next.Key) // that a list does not show it contradicts nothing
	same := equalEffects(known, next)
	newest := now.read && !now.at.Before(old.seenAt)
	switch {
	case same && newest && old.effect.NeedsRead:
		next.NeedsRead = false
		return merged{effect: next, write: true, replace: true}
	case same:
		return merged{effect: known, write: learned}
	case newest || next.Status.Rank() > old.effect.Status.Rank():
		next.NeedsRead = !newest && old.effect.NeedsRead
		m := merged{effect: next, write: true, replace: true}
		if old.effect.Status != next.Status || old.effect.Money != next.Money {
			m.before, m.after = differences(old.effect, next)
		}
		return m
	}
	m := merged{effect: known, write: learned || !known.NeedsRead}
	m.effect.NeedsRead = true
	m.before, m.after = differences(known, next)
	return m
}

// withUnsaid fills what an observation does not speak of with what is known. No object
// shows the key that it was made with, so only the feed tells it and nothing takes it
// back. So are fees often told by a report only, and stay what they were while the amount
// does. An event or a file row is silent about what its writer did not know yet or never
// writes: that is no other value.
func withUnsaid(e, known recon.Effect, read bool) recon.Effect {
	e.Key = cmp.Or(e.Key, known.Key)
	if !read || e.Money == known.Money {
		e.Fee, e.Net = cmp.Or(e.Fee, known.Fee), cmp.Or(e.Net, known.Net)
		if e.Settlement.IsZero() {
			e.Settlement = known.Settlement
		}
	}
	if read {
		return e
	}
	// What came to nothing is not in its parent's total any more: the one that is known is out of date.
	if e.Status.Live() || e.Status.Rank() <= known.Status.Rank() {
		e.ParentTotal = cmp.Or(e.ParentTotal, known.ParentTotal)
	}
	if len(e.OtherParents) == 0 {
		e.OtherParents = known.OtherParents
	}
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = known.UpdatedAt
	}
	for _, f := range []struct{ said, known *string }{
		{&e.Target, &known.Target}, {&e.NaturalReference, &known.NaturalReference}, {&e.CreatedBy, &known.CreatedBy},
		{&e.FailureReason, &known.FailureReason}, {&e.CausedBy, &known.CausedBy},
	} {
		*f.said = cmp.Or(*f.said, *f.known)
	}
	return e
}

// normal gives an effect as it is read back: times cut to what is stored, empty
// lists as none.
func normal(e recon.Effect) recon.Effect {
	e.CreatedAt, e.UpdatedAt = stored(e.CreatedAt), stored(e.UpdatedAt)
	if len(e.OtherParents) == 0 {
		e.OtherParents = nil
	}
	if len(bytes.TrimSpace(e.Metadata)) == 0 || string(e.Metadata) == "null" {
		e.Metadata = nil
	}
	return e
}

// equalEffects compares all that we keep of an observation; not the owner and the
// marks that are ours.
func equalEffects(a, b recon.Effect) bool {
	x, y := plain(a), plain(b)
	for k, v := range x {
		if !reflect.DeepEqual(v, y[k]) {
			return false
		}
	}
	return sameMetadata(a.Metadata, b.Metadata)
}

// differences gives the fields that differ, on both sides, as they are stored in
// effect_changes.
func differences(a, b recon.Effect) (before, after map[string]any) {
	x, y := plain(a), plain(b)
	before, after = map[string]any{}, map[string]any{}
	for k, v := range x {
		if !reflect.DeepEqual(v, y[k]) {
			before[k], after[k] = v, y[k]
		}
	}
	if !sameMetadata(a.Metadata, b.Metadata) {
		before["metadata"], after["metadata"] = a.Metadata, b.Metadata
	}
	return before, after
}

// plain lists an effect's observed fields under their column names, without its
// identity and metadata.
func plain(e recon.Effect) map[string]any {
	number := func(p *int64) any {
		if p == nil {
			return nil
		}
		return *p
	}
	return map[string]any{
		"source": string(e.Source), "kind": e.Kind, "status": string(e.Status),
		"amount": e.Money.Minor, "currency": e.Money.Currency, "parent": e.Parent, "other_parents": sorted(e.OtherParents),
		"target": e.Target, "reference": e.Reference, "natural_reference": e.NaturalReference, "key": e.Key,
		"created_at": e.CreatedAt.Format(time.RFC3339Nano), "updated_at": e.UpdatedAt.Format(time.RFC3339Nano),
		"fee": number(e.Fee), "net": number(e.Net),
		"settlement_amount": e.Settlement.Minor, "settlement_currency": e.Settlement.Currency,
		"created_by": e.CreatedBy, "failure_reason": e.FailureReason, "caused_by": e.CausedBy, "parent_total": number(e.ParentTotal),
	}
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}

// sameMetadata compares two JSON texts by what they mean: the table gives objects back
// with other spaces and another order of keys.
func sameMetadata(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	var x, y any
	return unmarshalExact(a, &x) == nil && unmarshalExact(b, &y) == nil && reflect.DeepEqual(x, y)
}

// unmarshalExact keeps numbers as they are written, since floats lose digits.
func unmarshalExact(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}
