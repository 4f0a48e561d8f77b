package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func (a *app) newOperationsErase() *cobra.Command {
	var reference string
	cmd := &cobra.Command{
		Use: "erase --reference R", Short: "Erase what may be personal of the operations with this id or natural reference",
		Long: "Erases their request, metadata and result, the metadata and the maker of their effects, and what the provider sent of them, events too. " +
			"Amounts, states, ids and the journal stay, an entry says what was erased, and every chain still verifies.\n" +
			"Erase at the provider first: what it still holds is read again by the next look.",
		Args: exactly(),
	}
	cmd.Flags().StringVar(&reference, "reference", "", "the operation's id, or its natural reference, such as an invoice's number")
	cmd.RunE = a.verb(func(ctx context.Context, _ []string) error {
		if reference == "" {
			return misuse("operations erase needs --reference: the operation's id or its natural reference")
		}
		return a.withLedger(ctx, func(l *ledger.Ledger) error { return a.operationsErase(ctx, l, reference) })
	})
	return cmd
}

// erasedDocument is what was erased, as JSON.
type erasedDocument struct {
	Operations []recon.OperationID `json:"operations"`
	Requests   int                 `json:"requests"`
	Effects    int                 `json:"effects"`
	Objects    int                 `json:"objects"`
	Events     int                 `json:"events"`
}

func (a *app) operationsErase(ctx context.Context, l *ledger.Ledger, reference string) error {
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	done, err := l.Erase(ctx, reference, now)
	var missing *ledger.NotFoundError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w: nothing was erased", err)
	}
	if err != nil {
		return err
	}
	events, err := inbox.Open(l).EraseBytes(ctx, done.About, now)
	if err != nil {
		return fmt.Errorf("the operations were erased and the bytes of their events were not: %w; run the same again", err)
	}
	out := erasedDocument{done.Operations, done.Requests, done.Effects, done.Bytes, events}
	return a.print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "erased of %s: %s with metadata or a result, metadata of %s, the bytes of %s and %s\n",
			count(len(out.Operations), "operation"), count(out.Requests, "request"), count(out.Effects, "effect"),
			count(out.Objects, "object"), count(out.Events, "event"))
		return err
	})
}
