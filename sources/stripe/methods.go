package stripe

import (
	"context"

	stripego "github.com/stripe/stripe-go/v82"
)

// Each kind is asked by its own typed methods of stripe-go, all of them GETs. They are
// written out, so that a test can hold the list of what this package can reach.

func listCharges(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Charges.List(ctx, &stripego.ChargeListParams{ListParams: p, CreatedRange: l.created(),
		PaymentIntent: l.by("payment_intent"), Customer: l.by("customer")}))
}

func oneCharge(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Charges.Retrieve(ctx, id, &stripego.ChargeRetrieveParams{Params: p})
	return err
}

func searchCharges(ctx context.Context, at *place, p stripego.SearchParams) error {
	return drain(at.api.V1Charges.Search(ctx, &stripego.ChargeSearchParams{SearchParams: p}))
}

func listSessions(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1CheckoutSessions.List(ctx, &stripego.CheckoutSessionListParams{ListParams: p, CreatedRange: l.created(),
		PaymentIntent: l.by("payment_intent"), Subscription: l.by("subscription"), Customer: l.by("customer")}))
}

func oneSession(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1CheckoutSessions.Retrieve(ctx, id, &stripego.CheckoutSessionRetrieveParams{Params: p})
	return err
}

func listCreditNotes(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1CreditNotes.List(ctx, &stripego.CreditNoteListParams{ListParams: p, CreatedRange: l.created(),
		Invoice: l.by("invoice"), Customer: l.by("customer")}))
}

func oneCreditNote(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1CreditNotes.Retrieve(ctx, id, &stripego.CreditNoteRetrieveParams{Params: p})
	return err
}

func listCustomers(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Customers.List(ctx, &stripego.CustomerListParams{ListParams: p, CreatedRange: l.created()}))
}

func oneCustomer(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Customers.Retrieve(ctx, id, &stripego.CustomerRetrieveParams{Params: p})
	return err
}

func searchCustomers(ctx context.Context, at *place, p stripego.SearchParams) error {
	return drain(at.api.V1Customers.Search(ctx, &stripego.CustomerSearchParams{SearchParams: p}))
}

func listDisputes(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Disputes.List(ctx, &stripego.DisputeListParams{ListParams: p, CreatedRange: l.created(),
		Charge: l.by("charge"), PaymentIntent: l.by("payment_intent")}))
}

func oneDispute(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Disputes.Retrieve(ctx, id, &stripego.DisputeRetrieveParams{Params: p})
	return err
}

func listInvoices(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Invoices.List(ctx, &stripego.InvoiceListParams{ListParams: p, CreatedRange: l.created(),
		Subscription: l.by("subscription"), Customer: l.by("customer")}))
}

func oneInvoice(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Invoices.Retrieve(ctx, id, &stripego.InvoiceRetrieveParams{Params: p})
	return err
}

func searchInvoices(ctx context.Context, at *place, p stripego.SearchParams) error {
	return drain(at.api.V1Invoices.Search(ctx, &stripego.InvoiceSearchParams{SearchParams: p}))
}

func listIntents(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1PaymentIntents.List(ctx, &stripego.PaymentIntentListParams{ListParams: p, CreatedRange: l.created(),
		Customer: l.by("customer")}))
}

func oneIntent(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1PaymentIntents.Retrieve(ctx, id, &stripego.PaymentIntentRetrieveParams{Params: p})
	return err
}

func searchIntents(ctx context.Context, at *place, p stripego.SearchParams) error {
	return drain(at.api.V1PaymentIntents.Search(ctx, &stripego.PaymentIntentSearchParams{SearchParams: p}))
}

func listPayouts(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Payouts.List(ctx, &stripego.PayoutListParams{ListParams: p, CreatedRange: l.created()}))
}

func onePayout(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Payouts.Retrieve(ctx, id, &stripego.PayoutRetrieveParams{Params: p})
	return err
}

func listRefunds(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Refunds.List(ctx, &stripego.RefundListParams{ListParams: p, CreatedRange: l.created(),
		Charge: l.by("charge"), PaymentIntent: l.by("payment_intent")}))
}

func oneRefund(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Refunds.Retrieve(ctx, id, &stripego.RefundRetrieveParams{Params: p})
	return err
}

// listSubscriptions asks for all of them: without the parameter Stripe leaves out those
// that were canceled, and what was ended would be taken for what never was.
func listSubscriptions(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Subscriptions.List(ctx, &stripego.SubscriptionListParams{ListParams: p, CreatedRange: l.created(),
		Customer: l.by("customer"), Status: stripego.String("all")}))
}

func oneSubscription(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Subscriptions.Retrieve(ctx, id, &stripego.SubscriptionRetrieveParams{Params: p})
	return err
}

func searchSubscriptions(ctx context.Context, at *place, p stripego.SearchParams) error {
	return drain(at.api.V1Subscriptions.Search(ctx, &stripego.SubscriptionSearchParams{SearchParams: p}))
}

func listTransfers(ctx context.Context, l listing, p stripego.ListParams) error {
	return drain(l.place.api.V1Transfers.List(ctx, &stripego.TransferListParams{ListParams: p, CreatedRange: l.created()}))
}

func oneTransfer(ctx context.Context, at *place, id string, p stripego.Params) error {
	_, err := at.api.V1Transfers.Retrieve(ctx, id, &stripego.TransferRetrieveParams{Params: p})
	return err
}

func listEvents(ctx context.Context, l listing, p stripego.ListParams) error {
	params := &stripego.EventListParams{ListParams: p, CreatedRange: l.created()}
	if len(l.types) > 0 {
		params.Types = stripego.StringSlice(l.types) // an empty list would be sent, and refused
	}
	return drain(l.place.api.V1Events.List(ctx, params))
}
