package world

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// NewAgentClient makes the client with which an agent sends to Stripe at a url: one attempt is one
// request, or the ledger would not know of the others.
func NewAgentClient(url, key string) *stripego.Client {
	return stripego.NewClient(key, stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(url), MaxNetworkRetries: stripego.Int64(0),
		HTTPClient:    &http.Client{Transport: &attempt.Transport{}, Timeout: 10 * time.Second},
		LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
	})))
}

// begin records the intent, as an agent does before it sends anything, and plans what
// it will do next.
func (w *World) begin(ctx context.Context, i intent) error {
	answer, err := w.open(ctx, i)
	if err != nil {
		return err
	}
	if answer.Verdict != "new" {
		return fmt.Errorf("%s: opened as %s", i.id, answer.Verdict)
	}
	for _, f := range i.fate.faults {
		f.Method, f.Key = http.MethodPost, answer.Key
		w.stripe.Script(f)
	}
	for _, s := range i.fate.steps {
		w.agenda.Plan(i.at.Add(s.after), func() error { return w.act(ctx, i, s) })
	}
	return nil
}

// open asks the ledger for the operation of the intent: the same case and step give
// the same one, however often it is asked.
func (w *World) open(ctx context.Context, i intent) (ledger.OpenAnswer, error) {
	request, err := json.Marshal(map[string]any{"charge": i.charge, "amount": i.money.Minor})
	if err != nil {
		return ledger.OpenAnswer{}, err
	}
	step := int64(1)
	return w.ledger.OpenOperation(ctx, ledger.OpenRequest{
		ID: i.id, Action: i.action, Target: "order:" + i.order, Parent: i.charge,
		Case: i.caseID(), Step: &step, Amount: i.money.Minor, Currency: i.money.Currency,
		Request: request, Run: "run-" + i.order, ToolCall: "call-1", Agent: "refund-agent",
	})
}

// act is one step of the agent: claim, send, record, and be told. A crash ends it
// where the fate says; the process that died is told nothing.
func (w *World) act(ctx context.Context, i intent, s step) error {
	if s.reopen {
		answer, err := w.open(ctx, i)
		if err != nil {
			return err
		}
		w.tell(i, "replayed; the ledger says "+answer.Verdict+" ("+string(answer.State)+")")
	}
	claim, err := w.ledger.Claim(ctx, ledger.ClaimRequest{OperationID: i.id, Holder: "agent", Call: fmt.Sprint(s.after)})
	if err != nil {
		return err
	}
	switch {
	case !claim.Claimed:
		w.tell(i, claim.Verdict)
		return nil
	case s.crash == diesUnsent:
		w.tell(i, "died before the call")
		return nil
	}
	sent := w.send(ctx, i, claim)
	if s.crash == diesUnwritten {
		w.tell(i, "died after the call")
		return nil
	}
	sent.OperationID, sent.Token = i.id, claim.Token
	finish, err := w.ledger.Finish(ctx, sent)
	if err != nil {
		return err
	}
	w.tell(i, finish.Verdict)
	return nil
}

func (w *World) tell(i intent, words string) {
	w.told[i.id] = append(w.told[i.id], w.clock.Now().Format("Mon 15:04")+" "+words)
}

// send makes the refund and says how that went. The amount is what the agent's code
// makes of the request, which its bug may have changed.
func (w *World) send(ctx context.Context, i intent, c ledger.ClaimAnswer) ledger.FinishRequest {
	ctx, sent := stripe.Begin(ctx, stripe.Sending{Key: c.Key, Marker: c.Marker.Name, Reference: c.Marker.Value, InDoubt: c.InDoubt})
	p := &stripego.RefundCreateParams{
		Charge: stripego.String(i.charge),
		Amount: stripego.Int64(i.money.Minor * max(i.fate.times, 1)),
	}
	p.SetIdempotencyKey(c.Key)
	p.AddMetadata(c.Marker.Name, c.Marker.Value)
	_, _ = w.client.V1Refunds.Create(ctx, p) // the report reads the wire, which knows more than the client tells
	r := sent.Report()
	return ledger.FinishRequest{Class: r.Class, EffectID: r.EffectID, Result: r.Result, ErrorCode: r.ErrorCode, RequestID: r.RequestID}
}

// lifeOf tells the provider what becomes of a refund.
func (w *World) lifeOf(r stripetest.Refund) stripetest.Life {
	return w.lives[strings.TrimSpace(r.Metadata[marker])]
}
