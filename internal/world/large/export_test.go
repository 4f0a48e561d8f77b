package large

import "github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"

// CardFaults lists all that may befall requests and questions at the card provider.
func CardFaults() []stripetest.Fault {
	all := append([]stripetest.Fault{}, reading...)
	for _, list := range sending {
		all = append(all, list...)
	}
	return all
}
