package stripe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reachable is every method of Stripe's API that this package can call. All of them
// are GETs. A new line here is a decision that a reader sees.
var reachable = []string{
	"V1Accounts.Retrieve",
	"V1Charges.List",
	"V1Charges.Retrieve",
	"V1Charges.Search",
	"V1CheckoutSessions.List",
	"V1CheckoutSessions.Retrieve",
	"V1CreditNotes.List",
	"V1CreditNotes.Retrieve",
	"V1Customers.List",
	"V1Customers.Retrieve",
	"V1Customers.Search",
	"V1Disputes.List",
	"V1Disputes.Retrieve",
	"V1Events.List",
	"V1Invoices.List",
	"V1Invoices.Retrieve",
	"V1Invoices.Search",
	"V1PaymentIntents.List",
	"V1PaymentIntents.Retrieve",
	"V1PaymentIntents.Search",
	"V1Payouts.List",
	"V1Payouts.Retrieve",
	"V1Refunds.List",
	"V1Refunds.Retrieve",
	"V1Subscriptions.List",
	"V1Subscriptions.Retrieve",
	"V1Subscriptions.Search",
	"V1Transfers.List",
	"V1Transfers.Retrieve",
}

// borrowed is everything else that is used of stripe-go: types, and functions that
// send nothing by themselves.
var borrowed = []string{
	"AccountRetrieveParams", "BackendConfig", "Backends", "Bool", "ChargeListParams", "ChargeRetrieveParams",
	"ChargeSearchParams", "CheckoutSessionListParams", "CheckoutSessionRetrieveParams", "Client", "ComputeSignature",
	"CreditNoteListParams", "CreditNoteRetrieveParams", "CustomerListParams", "CustomerRetrieveParams",
	"CustomerSearchParams", "DisputeListParams", "DisputeRetrieveParams", "EventListParams", "Int64",
	"InvoiceListParams", "InvoiceRetrieveParams", "InvoiceSearchParams", "LevelNull", "LeveledLogger", "ListParams",
	"NewBackendsWithConfig", "NewClient", "Params", "PaymentIntentListParams", "PaymentIntentRetrieveParams",
	"PaymentIntentSearchParams", "PayoutListParams", "PayoutRetrieveParams", "RangeQueryParams", "RefundListParams",
	"RefundRetrieveParams", "SearchParams", "Seq2", "String", "StringSlice", "SubscriptionListParams",
	"SubscriptionRetrieveParams", "SubscriptionSearchParams", "TransferListParams", "TransferRetrieveParams",
	"WithBackends",
}

func TestThePackageReachesOnlyTheseMethodsOfStripe(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	methods, names := map[string]bool{}, map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "stripe-go") && (i.Path.Value != `"github.com/stripe/stripe-go/v82"` || i.Name == nil || i.Name.Name != "stripego") {
				t.Errorf("%s imports %s; only the root package is used, under the name stripego, so that this test sees all of it", entry.Name(), i.Path.Value)
			}
		}
		collect(t, entry.Name(), file, methods, names)
	}
	if diff := cmp.Diff(reachable, slices.Sorted(maps.Keys(methods))); diff != "" {
		t.Errorf("methods of Stripe's API (-listed +reached):\n%s", diff)
	}
	if diff := cmp.Diff(borrowed, slices.Sorted(maps.Keys(names))); diff != "" {
		t.Errorf("other names of stripe-go (-listed +used):\n%s", diff)
	}
}

var service = regexp.MustCompile(`^(V[0-9]+[A-Z]|OAuth)`)

// collect notes the methods of services and the names of stripe-go that a file uses.
func collect(t *testing.T, name string, file *ast.File, methods, names map[string]bool) {
	called := map[*ast.SelectorExpr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if root, ok := sel.X.(*ast.Ident); ok && root.Name == "stripego" {
			names[sel.Sel.Name] = true
		}
		if of, ok := sel.X.(*ast.SelectorExpr); ok && service.MatchString(of.Sel.Name) {
			methods[of.Sel.Name+"."+sel.Sel.Name] = true
			called[of] = true
		}
		if service.MatchString(sel.Sel.Name) && !called[sel] {
			t.Errorf("%s takes the service %s as a value, so that its methods cannot be listed", name, sel.Sel.Name)
		}
		return true
	})
}
