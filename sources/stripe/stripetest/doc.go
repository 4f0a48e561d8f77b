// Package stripetest is a fake Stripe over real HTTP that keeps the provider's rules.
package stripetest
