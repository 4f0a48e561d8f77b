package main

import (
	"context"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The checks of this file refuse a name that neither the configuration nor the ledger
// knows: a list that is empty because of a misspelt name would say that there is nothing.

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
	return noSuch("source", source, known)
}

func knownAction(ctx context.Context, l *ledger.Ledger, c *config.Config, action string) error {
	if action == "" {
		return nil
	}
	known, err := l.Actions(ctx)
	if err != nil {
		return err
	}
	for _, p := range c.Policies {
		known = append(known, p.Action)
	}
	if slices.Contains(known, action) {
		return nil
	}
	return noSuch("action", action, known)
}

// noSuch says which names there are instead of the one that a flag of that name gave.
func noSuch[S ~string](flag string, given S, known []S) error {
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return misuse("--%s %s: there is no %s yet; name them in the configuration, and apply it with `reconciler policy apply`", flag, given, flag)
	}
	return misuse("--%s %s: there is no such %s; there are %s", flag, given, flag, words(known))
}
