package main

import (
	"context"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// knownSource refuses a source that neither the configuration nor the ledger knows: a list
// that is empty because of a misspelt name would say that there is nothing.
func knownSource(ctx context.Context, l *ledger.Ledger, c *config.Config, source recon.SourceName) error {
	if source == "" || slices.ContainsFunc(c.Sources, func(s config.Source) bool { return s.Name == source }) {
		return nil
	}
	knows, known, err := l.Knows(ctx, source)
	if err != nil || knows {
		return err
	}
	for _, s := range c.Sources {
		known = append(known, s.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if len(known) == 0 {
		return misuse("--source %s: there is no source yet; name them in the configuration, and apply it with `reconciler policy apply`", source)
	}
	return misuse("--source %s: there is no such source; there are %s", source, words(known))
}
