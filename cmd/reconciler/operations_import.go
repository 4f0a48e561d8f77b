package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

func (a *app) newOperationsImport() *cobra.Command {
	var written string
	cmd := &cobra.Command{
		Use: "import F", Short: "Record operations of another ledger: one JSON line each, or a CSV whose header names the fields (- is standard input)",
		Args: exactly("a file of operations"),
	}
	bindOperationsFormat(cmd, &written)
	cmd.RunE = a.verb(func(ctx context.Context, args []string) error {
		table, err := operationsTable(written, args[0])
		if err != nil {
			return err
		}
		return a.operationsImport(ctx, args, table)
	})
	return cmd
}

// operationsFile is a file of operations and how it is written.
type operationsFile struct {
	io.Reader
	name  string
	table bool
}

// importedOperations is what became of a file, and what a person should know of it.
type importedOperations struct {
	ledger.ImportResult
	Notes []files.Note `json:"notes"`
}

func (a *app) operationsImport(ctx context.Context, args []string, table bool) error {
	in, name, err := a.input(args)
	if err != nil {
		return err
	}
	defer in.Close()
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		now, err := l.Now(ctx)
		if err != nil {
			return err
		}
		r, err := importOperations(ctx, l, operationsFile{in, name, table}, now)
		if err != nil {
			return err
		}
		err = a.print(r, func(w io.Writer) error {
			if err := writeImported(w, name, r.ImportResult); err != nil {
				return err
			}
			return writeNotes(w, r.Notes)
		})
		if r.Imported == 0 && r.Repeated == 0 {
			return errors.Join(err, fmt.Errorf("%s: nothing was imported", name))
		}
		return err
	})
}

func importOperations(ctx context.Context, l *ledger.Ledger, f operationsFile, now time.Time) (importedOperations, error) {
	r := importedOperations{Notes: []files.Note{}}
	var err error
	if !f.table {
		if r.ImportResult, err = l.Import(ctx, f, now); err != nil {
			return r, fmt.Errorf("%s: %w", f.name, err)
		}
		return r, nil
	}
	var rows *files.Operations
	r.ImportResult, err = l.ImportTable(ctx, func(only func(recon.SourceName) recon.Account) ledger.OperationRows {
		rows = files.OpenOperations(f, f.name, only)
		return rows
	}, now)
	if err != nil {
		return r, err // which names the file
	}
	r.Notes = append(r.Notes, rows.Notes()...)
	return r, nil
}

func writeImported(w io.Writer, name string, r ledger.ImportResult) error {
	for _, f := range r.Faults {
		if _, err := fmt.Fprintf(w, "%s:%d: refused: %s\n", name, f.Line, f.Reason); err != nil {
			return err
		}
	}
	if more := r.Refused - len(r.Faults); more > 0 {
		if _, err := fmt.Fprintf(w, "and %d more refused\n", more); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s: %d imported, %d already there, %d set aside, %d refused (%s)\n",
		name, count(r.Rows, "row"), r.Imported, r.Repeated, r.SetAside, r.Refused, r.Encoding)
	return err
}

func writeNotes(w io.Writer, notes []files.Note) error {
	for _, n := range notes {
		if _, err := fmt.Fprintf(w, "  note: %s\n", recon.Printable(n.Text)); err != nil {
			return err
		}
	}
	return nil
}
