package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// maxRequest bounds one opening: the ledger takes 64 KiB each of request and metadata.
const maxRequest = 256 << 10

func newOperationsCommand(a *app) *cobra.Command {
	open := &cobra.Command{
		Use: "open [FILE]", Short: "Record one intent before anything is sent: a JSON object from FILE or standard input",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse("%s takes one file", cmd.CommandPath())
			}
			return nil
		},
		RunE: a.verb(a.operationsOpen),
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Tell the whole story of one operation", Args: exactly("an operation's id"),
		RunE: a.verb(a.operationsShow),
	}
	verify := &cobra.Command{
		Use: "verify [ID]...", Short: "Check the hash chains of these operations, or of all", RunE: a.verb(a.operationsVerify),
	}
	return group("operations", "Open, import, list, show, verify or erase operations", open, a.newOperationsImport(), a.newOperationsList(), show, verify, a.newOperationsErase())
}

func (a *app) newOperationsList() *cobra.Command {
	var f ledger.OperationFilter
	var source string
	var states []string
	cmd := &cobra.Command{Use: "list", Short: "List operations, newest first", Args: exactly()}
	cmd.Flags().StringVar(&source, "source", "", "only of this source")
	cmd.Flags().StringVar(&f.Action, "action", "", "only of this action")
	cmd.Flags().StringArrayVar(&states, "state", nil, "only in this state; may be repeated")
	cmd.Flags().StringVar(&f.Case, "case", "", "only the steps of this case")
	cmd.Flags().StringVar(&f.Key, "key", "", "only with this idempotency key")
	cmd.Flags().StringVar(&f.Reference, "reference", "", "only with this natural reference")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "at most so many, up to 10,000")
	cmd.RunE = a.verb(func(ctx context.Context, _ []string) error {
		f.Source, f.States = recon.SourceName(source), nil
		for _, s := range states {
			if !recon.State(s).Valid() {
				return misuse("--state %s: write one of %s", s, words(recon.States))
			}
			f.States = append(f.States, recon.State(s))
		}
		if f.Limit < 1 || f.Limit > 10_000 {
			return misuse("--limit %d: write a number from 1 to 10000", f.Limit)
		}
		c, err := a.maybeConfig()
		if err != nil {
			return err
		}
		return a.withLedger(ctx, func(l *ledger.Ledger) error {
			if err := errors.Join(knownSource(ctx, l, c, f.Source), knownAction(ctx, l, c, f.Action)); err != nil {
				return err
			}
			return a.operationsList(ctx, l, f)
		})
	})
	return cmd
}

func words[S ~string](list []S) string {
	texts := make([]string, 0, len(list))
	for _, s := range list {
		texts = append(texts, string(s))
	}
	return strings.Join(texts, ", ")
}

// withLedger opens the ledger for a verb that needs no configuration.
func (a *app) withLedger(ctx context.Context, f func(*ledger.Ledger) error) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	l, done, err := a.openLedger(ctx, c)
	if err != nil {
		return err
	}
	defer done()
	return f(l)
}

func (a *app) operationsOpen(ctx context.Context, args []string) error {
	in, name, err := a.input(args)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxRequest {
		return misuse("%s: an intent is at most %d bytes", name, maxRequest)
	}
	var request ledger.OpenRequest
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return misuse("%s: %v; write one object such as {\"action\": …, \"target\": …, \"request\": {…}}", name, err)
	}
	if d.More() {
		return misuse("%s: holds more than one object; open one at a time", name)
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		answer, err := l.OpenOperation(ctx, request)
		var fault *ledger.Fault
		if errors.As(err, &fault) && fault.Kind == ledger.FaultData {
			return misuse("%s: %v", name, err)
		}
		if err != nil {
			return err
		}
		err = a.print(openedDocument(answer), func(w io.Writer) error { return writeOpened(w, answer) })
		if answer.Verdict == "conflict" || answer.Verdict == "rejected" {
			return errors.Join(err, fmt.Errorf("%s: %s", answer.Verdict, answer.Reason))
		}
		return err
	})
}

// openedDocument is the answer as the function gives it: a rejected intent is no
// operation, and has nulls instead of empty texts.
func openedDocument(o ledger.OpenAnswer) any {
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return struct {
		OperationID *string         `json:"operation_id"`
		Key         *string         `json:"key"`
		State       *string         `json:"state"`
		Verdict     string          `json:"verdict"`
		Already     *ledger.Already `json:"already,omitempty"`
		Reason      string          `json:"reason,omitempty"`
		Result      json.RawMessage `json:"result,omitempty"`
	}{orNull(string(o.OperationID)), orNull(o.Key), orNull(string(o.State)), o.Verdict, already(o), o.Reason, o.Result}
}

// already is left out of an answer that has no sums.
func already(o ledger.OpenAnswer) *ledger.Already {
	if o.Already.Succeeded == "" {
		return nil
	}
	return &o.Already
}

func writeOpened(w io.Writer, o ledger.OpenAnswer) error {
	if o.OperationID == "" {
		_, err := fmt.Fprintf(w, "%s: nothing was recorded: %s\n", o.Verdict, o.Reason)
		return err
	}
	_, err := fmt.Fprintf(w, "%s: operation %s, state %s, key %s\n", o.Verdict, o.OperationID, o.State, o.Key)
	return err
}

// input opens the file that a verb names, or standard input.
func (a *app) input(args []string) (io.ReadCloser, string, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(a.in), "standard input", nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, "", misuse("%v", err)
	}
	return f, args[0], nil
}

// cut says of a list that is as long as it may be that there may be more.
func (a *app) cut(n, limit int) {
	if n == limit {
		fmt.Fprintf(a.err, "reconciler: stopped at --limit %d, the newest first: there may be more\n", limit)
	}
}

func (a *app) operationsList(ctx context.Context, l *ledger.Ledger, f ledger.OperationFilter) error {
	list, err := l.Operations(ctx, f)
	if err != nil {
		return err
	}
	defer a.cut(len(list), f.Limit)
	if a.format == "json" {
		return reports.OperationsJSON(a.out, list)
	}
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	policies, err := l.Policies(ctx)
	if err != nil {
		return err
	}
	var exponents map[string]int
	for _, p := range policies { // of one provider; they differ from ISO 4217 in few currencies
		if f.Source == "" || p.Source == f.Source {
			exponents = p.Exponents
			break
		}
	}
	return reports.Operations(a.out, list, now, exponents)
}

func (a *app) operationsShow(ctx context.Context, args []string) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		story, err := l.Story(ctx, recon.OperationID(args[0]))
		if err != nil {
			return err
		}
		if a.format == "json" {
			return reports.StoryJSON(a.out, story)
		}
		now, err := l.Now(ctx)
		if err != nil {
			return err
		}
		return reports.Story(a.out, story, now, c.Zone)
	})
}

func (a *app) operationsVerify(ctx context.Context, args []string) error {
	ids := make([]recon.OperationID, 0, len(args))
	for _, id := range args {
		ids = append(ids, recon.OperationID(id))
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		r, err := l.Verify(ctx, ids...)
		if err != nil {
			return err
		}
		err = a.print(r, func(w io.Writer) error {
			for _, b := range r.Broken {
				if _, err := fmt.Fprintf(w, "%s: broken at entry %d: %s\n", recon.Printable(string(b.Operation)), b.Seq, b.Reason); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(w, "%s, %d entries, %d broken\n", count(int(r.Operations), "operation"), r.Entries, len(r.Broken))
			return err
		})
		if len(r.Broken) > 0 {
			return errors.Join(err, fmt.Errorf("the journals of %s were changed after they were written; restore the database from a backup to compare", count(len(r.Broken), "operation")))
		}
		return err
	})
}
