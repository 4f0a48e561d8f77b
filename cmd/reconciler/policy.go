package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func newPolicyCommand(a *app) *cobra.Command {
	return group("policy", "Store the configured policies in the ledger, or list what is stored",
		&cobra.Command{
			Use: "apply", Short: "Store the policy of every configured action; a changed one becomes a new version", Args: exactly(),
			RunE: a.verb(a.policyApply),
		},
		&cobra.Command{
			Use: "list", Short: "List the active policies of the ledger", Args: exactly(),
			RunE: a.verb(a.policyList),
		},
	)
}

func (a *app) policyApply(ctx context.Context, _ []string) error {
	c, err := a.needed("policy apply", config.FindUnread)
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	applied, err := l.ApplyPolicies(ctx, c.Policies, now)
	if err != nil {
		return err
	}
	if err := l.ApplyPeople(ctx, daemon.People(c), now); err != nil {
		return err
	}
	return a.printPolicies(applied)
}

func (a *app) policyList(ctx context.Context, _ []string) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	policies, err := l.Policies(ctx)
	if err != nil {
		return err
	}
	return a.printPolicies(policies)
}

func (a *app) printPolicies(policies []recon.Policy) error {
	document := append([]recon.Policy{}, policies...)
	return a.print(document, func(w io.Writer) error {
		if len(document) == 0 {
			_, err := fmt.Fprintln(w, "the ledger has no policy: write actions into the configuration and run `reconciler policy apply`")
			return err
		}
		for _, p := range document {
			_, err := fmt.Fprintf(w, "%s version %d: %s at %s, %s, repeat %s, when absent %s\n",
				p.Action, p.Version, recon.Noun(p.Effect), p.Source, p.Class, p.Repeat, p.OnAbsent)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
