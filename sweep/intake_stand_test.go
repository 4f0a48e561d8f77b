package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const hookSecret = "whsec_testonly"

// hooked is a stand whose Stripe delivers what happens, signed and over HTTP, to an inbox.
type hooked struct {
	*stand
	inbox  *inbox.Store
	intake *Intake
	source *stripe.Source
	url    string // where Stripe delivers to
	down   bool   // nobody answers there
}

func newHooked(t *testing.T, options ...standOption) *hooked {
	t.Helper()
	h := &hooked{stand: newStand(t, options...)}
	h.inbox = inbox.Open(h.ledger)
	h.source = h.client(receives)
	h.sweep.Source = h.source
	h.intake = &Intake{
		Inbox: h.inbox, Ledger: h.ledger, Sources: []IntakeSource{h.source}, every: -1,
		Sheets: map[recon.SourceName]recon.Sheet{testSource: h.source.Sheet()},
	}
	server := httptest.NewServer(http.HandlerFunc(h.receive))
	t.Cleanup(server.Close)
	h.url = server.URL
	_, err := h.stripe.AddEndpoint(stripetest.Endpoint{URL: h.url, Account: testAccount, Mode: "live", Secrets: []string{hookSecret}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// receives gives the stand's client a webhook secret.
func receives(settings *stripe.Settings, _ *stripe.Options) {
	settings.Webhook.Secrets = []recon.Secret{recon.NewSecret(hookSecret)}
}

// receive does what the daemon's handler does, by the stand's clock.
func (h *hooked) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || h.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	e, err := h.source.Verify(r.Header, body, h.now())
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, err = h.inbox.Receive(r.Context(), inbox.Delivery{Event: e, At: h.now(), Foreign: !h.source.Sheet().Has(e.Account, e.Mode)})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// done records an intent that its sender ended as succeeded, by an effect that nobody has seen.
func (h *hooked) done(i intent, effect string) {
	h.Helper()
	h.open(i)
	token, _ := h.claim(i)
	if out := h.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": effect}); out["state"] != "succeeded" {
		h.Fatalf("%v", out)
	}
}

// deliver lets Stripe post what is due.
func (h *hooked) deliver() {
	h.Helper()
	if _, err := h.stripe.Post(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// post delivers a body of the test's own making, signed by Stripe's secret.
func (h *hooked) post(body string) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), http.MethodPost, h.url, bytes.NewReader([]byte(body)))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", stripetest.Sign(h.now(), []byte(body), hookSecret))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		h.Fatalf("%d for %s", resp.StatusCode, body)
	}
}

// event is a body about an object, as of the stand's now.
func (h *hooked) event(id, typ string, object map[string]any) string {
	h.Helper()
	b, err := json.Marshal(map[string]any{
		"id": id, "object": "event", "api_version": "2025-08-27.basil", "type": typ, "livemode": true, "created": h.now().Unix(),
		"request": map[string]any{"id": nil, "idempotency_key": nil}, "data": map[string]any{"object": object},
	})
	if err != nil {
		h.Fatal(err)
	}
	return string(b)
}

// refundObject is a refund of an intent as an event shows it.
func refundObject(i intent, id, status string, at time.Time) map[string]any {
	return map[string]any{
		"id": id, "object": "refund", "amount": i.amount, "currency": "eur", "status": status, "created": at.Unix(), "charge": i.charge,
		"payment_intent": nil, "reason": nil, "balance_transaction": nil, "metadata": map[string]any{testMarker: i.id},
	}
}

// take takes in what is in the inbox, and demands that it goes well.
func (h *hooked) take() Intaken {
	h.Helper()
	out, err := h.intake.Run(h.Context(), h.now)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// states gives the state of every event.
func (h *hooked) states() map[string]inbox.State {
	h.Helper()
	rows, err := h.inbox.List(h.Context(), inbox.Filter{Limit: 10_000})
	if err != nil {
		h.Fatal(err)
	}
	all := map[string]inbox.State{}
	for _, r := range rows {
		all[r.ID] = r.State
	}
	return all
}

// kinds lists the kinds of all findings, ended ones too, sorted.
func (h *hooked) kinds() string {
	h.Helper()
	var kinds []string
	for _, f := range h.findings() {
		kinds = append(kinds, string(f.Kind))
	}
	slices.Sort(kinds)
	return fmt.Sprint(kinds)
}

func (h *hooked) wantKinds(want ...string) {
	h.Helper()
	if got := h.kinds(); got != fmt.Sprint(want) {
		h.Errorf("findings %s, want %v", got, want)
	}
}

// calls counts the requests to Stripe.
func (h *hooked) calls() int { return len(h.stripe.Calls()) }
