// Command refund gives money back once, whatever crashes: a tool of an agent, guarded.
//
//	refund CASE ORDER CHARGE AMOUNT CURRENCY
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

func main() {
	answer, err := refund(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	told := map[string]any{"operation_id": answer.Operation, "verdict": answer.Verdict, "final": answer.Final, "note": answer.Text}
	if json.NewEncoder(os.Stdout).Encode(told) != nil || err != nil {
		os.Exit(1)
	}
}

func refund(ctx context.Context, args []string) (guard.Answer, error) {
	if len(args) != 5 {
		return guard.Answer{}, fmt.Errorf("usage: refund CASE ORDER CHARGE AMOUNT CURRENCY")
	}
	amount, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return guard.Answer{}, fmt.Errorf("amount %q is not in minor units", args[3])
	}
	l, err := ledger.Open(ctx, ledger.Options{URL: os.Getenv("RECONCILER_DATABASE_URL")})
	if err != nil {
		return guard.Answer{}, err
	}
	defer l.Close()
	request, err := json.Marshal(map[string]any{"charge": args[2], "amount": amount})
	if err != nil {
		return guard.Answer{}, err
	}
	step := int64(1)
	g := guard.Guard{Ledger: l, Holder: "refund-go"}
	return g.Do(ctx, guard.Call{Send: send, Intent: ledger.OpenRequest{
		Action: "refund.create", Target: "order:" + args[1], Parent: args[2], Case: args[0], Step: &step,
		Amount: amount, Currency: args[4], Request: request, Agent: "refund-go",
	}})
}

// send makes one attempt. It sends what was recorded, under the recorded key.
func send(ctx context.Context, a guard.Attempt) recon.AttemptReport {
	var request struct {
		Charge string
		Amount int64
	}
	if err := json.Unmarshal(a.Request, &request); err != nil {
		return recon.AttemptReport{Class: recon.ClassNotSent, ErrorCode: "request_unreadable"}
	}
	client := stripego.NewClient(os.Getenv("STRIPE_API_KEY"), stripego.WithBackends(stripego.NewBackendsWithConfig(
		&stripego.BackendConfig{URL: stripego.String(os.Getenv("STRIPE_API_URL")), MaxNetworkRetries: stripego.Int64(0),
			LeveledLogger: &stripego.LeveledLogger{}, HTTPClient: &http.Client{Transport: &attempt.Transport{}}})))
	ctx, sent := stripe.Begin(ctx, stripe.Sending{Key: a.Key, Marker: a.Marker.Name, Reference: a.Marker.Value, InDoubt: a.InDoubt})
	p := &stripego.RefundCreateParams{Charge: &request.Charge, Amount: &request.Amount}
	p.SetIdempotencyKey(a.Key)
	p.AddMetadata(a.Marker.Name, a.Marker.Value)
	_, _ = client.V1Refunds.Create(ctx, p) // the report reads the wire, which knows more than the client tells
	return sent.Report()
}
