// Package world simulates two days of a shop whose agent makes refunds, so that the
// product can be watched doing its main job, and be judged: the world knows the
// truth.
//
// Everything that the product touches is real: a PostgreSQL, the ledger's SQL
// functions, the Stripe client over HTTP against a fake Stripe that keeps the
// provider's rules, the sweeps, and messages delivered to a fake Slack. Only time is
// simulated, on one clock for the provider, the database and the sweeps.
//
// An intent's [fate] is drawn from the seed and says what goes wrong with it. The
// fates are a table that names, for each, what the truth demands in the end; the
// judge holds the ledger against that and against the provider's own books.
package world
