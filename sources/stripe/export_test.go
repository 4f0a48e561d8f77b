package stripe

import (
	"context"

	stripego "github.com/stripe/stripe-go/v82"
)

// TryToWrite tries to make a refund over the transport of a source.
func TryToWrite(url string) error {
	ctx := withExchange(context.Background(), &exchange{})
	api := stripego.NewClient("sk_live_TESTONLY", stripego.WithBackends(newBackends(url, nil)))
	_, err := api.V1Refunds.Create(ctx, &stripego.RefundCreateParams{Charge: stripego.String("ch_1")})
	return err
}
