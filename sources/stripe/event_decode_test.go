package stripe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

// eventOf gives a signed event of acct_1 live about an object.
func eventOf(typ, object string) recon.Event {
	body := fmt.Sprintf(`{"id":"evt_1","object":"event","api_version":"2025-08-27.basil","created":1772440000,"livemode":true,`+
		`"type":%q,"request":{"id":"req_1","idempotency_key":"k-1"},"data":{"object":%s}}`, typ, object)
	return recon.Event{Source: "stripe-main", System: "stripe", Account: "acct_1", Mode: "live", ID: "evt_1", Type: typ,
		CreatedAt: time.Unix(1772440000, 0).UTC(), Signed: true, Body: []byte(body)}
}

func decode(t *testing.T, src *stripe.Source, e recon.Event) sources.Shown {
	t.Helper()
	shown, err := src.Decode(e)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// with gives an object with fields replaced; null removes one, so that it is absent.
func with(t *testing.T, object, patch string) string {
	t.Helper()
	var fields, changes map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(patch), &changes); err != nil {
		t.Fatal(err)
	}
	for name, value := range changes {
		if fields[name] = value; string(value) == `"absent"` {
			delete(fields, name)
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	wholeRefund = `{"id":"re_1","object":"refund","amount":700,"balance_transaction":null,"charge":"ch_1","created":1772440000,"currency":"eur",` +
		`"metadata":{"op_id":"op_1","customer":"Jane"},"payment_intent":"pi_1","reason":null,"status":"succeeded"}`
	wholeCharge = `{"id":"ch_1","object":"charge","amount":5000,"amount_captured":5000,"amount_refunded":700,"balance_transaction":"txn_1",` +
		`"captured":true,"created":1772430000,"currency":"eur","customer":null,"livemode":true,"metadata":{},"payment_intent":"pi_1","refunded":false,"status":"succeeded"}`
	wholeIntent = `{"id":"pi_1","object":"payment_intent","amount":5000,"amount_received":5000,"canceled_at":null,"created":1772430000,"currency":"eur","customer":null,` +
		`"latest_charge":"ch_1","livemode":true,"metadata":{"op_id":"op_2"},"status":"succeeded"}`
)

// names writes what is shown in short: effects as kind id status key, hints with a "?".
func names(shown sources.Shown) []string {
	var list []string
	for _, e := range shown.Effects {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s", e.Kind, e.ID, e.Status, e.Money.Minor, e.Key)))
	}
	for _, h := range shown.Hints {
		list = append(list, strings.TrimSpace(fmt.Sprintf("? %s %s%s %s %s", h.Kind, h.ID, h.Parent, h.Reference, h.Key)))
	}
	return list
}

func TestWhatAnEventShows(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	refundedCharge := func(refunds string) string { return with(t, wholeCharge, `{"refunds":`+refunds+`}`) }
	second := with(t, wholeRefund, `{"id":"re_2","amount":300}`)
	tests := []struct {
		name, typ, object string
		want              []string
	}{
		{"a refund is made", "refund.created", wholeRefund, []string{"refund re_1 completed 700 k-1"}},
		{"a later change does not bear the key of the creation", "refund.updated", wholeRefund, []string{"refund re_1 completed 700"}},
		{"a refund fails", "refund.failed", with(t, wholeRefund, `{"status":"failed","failure_reason":"unknown"}`), []string{"refund re_1 failed 700"}},
		{"the old name of a refund's change", "charge.refund.updated", wholeRefund, []string{"refund re_1 completed 700"}},
		{"ids may be expanded", "refund.updated", with(t, wholeRefund, `{"charge":`+wholeCharge+`,"payment_intent":`+wholeIntent+`}`), []string{"refund re_1 completed 700"}},
		{"an intent is paid", "payment_intent.succeeded", wholeIntent, []string{"payment_intent pi_1 completed 5000"}},
		{"an old intent carries its charge", "payment_intent.succeeded", with(t, wholeIntent, `{"charges":{"data":[`+wholeCharge+`],"has_more":false}}`),
			[]string{"payment_intent pi_1 completed 5000", "charge ch_1 completed 5000"}},
		{"a charge is taken", "charge.succeeded", wholeCharge, []string{"charge ch_1 completed 5000 k-1"}},
		{"B10: a refunded charge without its refunds", "charge.refunded", wholeCharge, []string{"charge ch_1 completed 5000", "? refund ch_1  k-1"}},
		{"B10: a refunded charge with an empty list", "charge.refunded", refundedCharge(`{"data":[],"has_more":true}`), []string{"charge ch_1 completed 5000", "? refund ch_1  k-1"}},
		{"B10: a refunded charge with null", "charge.refunded", refundedCharge(`null`), []string{"charge ch_1 completed 5000", "? refund ch_1  k-1"}},
		{"an old refunded charge carries all of its refunds", "charge.refunded", refundedCharge(`{"data":[` + wholeRefund + `],"has_more":false}`),
			[]string{"charge ch_1 completed 5000", "refund re_1 completed 700"}},
		{"one that failed does not count in the sum", "charge.refunded", refundedCharge(`{"data":[` + with(t, second, `{"status":"failed"}`) + `,` + wholeRefund + `],"has_more":false}`),
			[]string{"charge ch_1 completed 5000", "refund re_2 failed 300", "refund re_1 completed 700"}},
		{"an old refunded charge carries some of its refunds", "charge.refunded", refundedCharge(`{"data":[` + wholeRefund + `],"has_more":true}`),
			[]string{"charge ch_1 completed 5000", "refund re_1 completed 700", "? refund ch_1  k-1"}},
		{"an old refunded charge whose refunds do not add up", "charge.refunded", refundedCharge(`{"data":[` + second + `],"has_more":false}`),
			[]string{"charge ch_1 completed 5000", "refund re_2 completed 300", "? refund ch_1  k-1"}},
		{"a child that cannot be read", "charge.refunded", refundedCharge(`{"data":[{}],"has_more":false}`), []string{"charge ch_1 completed 5000", "? refund ch_1  k-1"}},
		{"B48: a refund whose charge has moved", "refund.created", with(t, wholeRefund, `{"charge":"absent"}`), []string{"? refund re_1 op_1 k-1"}},
		{"a refund without a charge", "refund.created", with(t, wholeRefund, `{"charge":null}`), []string{"refund re_1 completed 700 k-1"}},
		{"B48: a refund without metadata", "refund.created", with(t, wholeRefund, `{"metadata":"absent"}`), []string{"? refund re_1  k-1"}},
		{"B48: a refund without its amount", "refund.updated", with(t, wholeRefund, `{"amount":"absent"}`), []string{"? refund re_1 op_1"}},
		{"B48: a status that is new", "refund.updated", with(t, wholeRefund, `{"status":"parked"}`), []string{"? refund re_1 op_1"}},
		{"B48: a field of another type", "refund.updated", with(t, wholeRefund, `{"amount":{"value":700}}`), []string{"? refund re_1 op_1"}},
		{"B66: a fee that is not known yet", "refund.created", with(t, wholeRefund, `{"balance_transaction":null}`), []string{"refund re_1 completed 700 k-1"}},
		{"B71: a reference that no text column holds", "refund.created", with(t, wholeRefund, `{"metadata":{"op_id":"op_\u0000","d":"\ud800"}}`), []string{"refund re_1 completed 700 k-1"}},
		{"a type that is not known", "refund_dream.created", wholeRefund, nil},
		{"an object that is not known", "charge.dreamt", `{"id":"dr_1","object":"dream"}`, nil},
		{"a known type about another object", "charge.succeeded", wholeRefund, nil},
		{"no object", "refund.created", `null`, nil},
		{"a list for an object", "refund.created", `[]`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shown := decode(t, src, eventOf(tt.typ, tt.object))
			if diff := cmp.Diff(tt.want, names(shown)); diff != "" {
				t.Errorf("shows (-want +got):\n%s", diff)
			}
			for i, raw := range shown.Raw {
				if raw.Effect != shown.Effects[i].Identity() || bytes.Contains(raw.Bytes, []byte("Jane")) {
					t.Errorf("raw %d: %s of %+v", i, raw.Bytes, raw.Effect)
				}
			}
			for _, h := range shown.Hints {
				if h.Account != "acct_1" || h.Mode != "live" {
					t.Errorf("hint %+v", h)
				}
			}
		})
	}
}

func TestB27_AnEventOfAnotherAccountOrModeShowsNothing(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	for _, at := range []recon.Account{{Account: "acct_1", Mode: "test"}, {Account: "acct_9", Mode: "live"}, {}} {
		e := eventOf("refund.created", wholeRefund)
		e.Account, e.Mode = at.Account, at.Mode
		if shown := decode(t, src, e); len(shown.Effects)+len(shown.Hints) != 0 {
			t.Errorf("%v: shows %v", at, names(shown))
		}
	}
	if _, err := src.Decode(eventOf("charge.succeeded", with(t, wholeCharge, `{"livemode":false}`))); err == nil {
		t.Error("an object of test mode in an event of live mode is shown")
	}
}

func TestAnEventThatNobodyVouchesForOnlyHints(t *testing.T) {
	t.Parallel()
	e := eventOf("refund.created", wholeRefund)
	e.Signed = false
	if diff := cmp.Diff([]string{"? refund re_1 op_1 k-1"}, names(decode(t, receiver(t, nil), e))); diff != "" {
		t.Errorf("shows (-want +got):\n%s", diff)
	}
}

func TestAKnownEventThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	dropped := eventOf("refund.created", wholeRefund)
	dropped.Body = nil
	for name, e := range map[string]recon.Event{
		"without its bytes":  dropped,
		"without an id":      eventOf("refund.created", with(t, wholeRefund, `{"id":"absent"}`)),
		"with an id of NULs": eventOf("refund.created", with(t, wholeRefund, `{"id":"re_\u0000","charge":"absent"}`)),
	} {
		if shown, err := src.Decode(e); err == nil || !strings.Contains(err.Error(), "evt_1") || len(shown.Effects) > 0 {
			t.Errorf("%s: %v, shows %v", name, err, names(shown))
		}
	}
}
