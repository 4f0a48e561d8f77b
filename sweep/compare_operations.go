package sweep

import (
	"context"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// readOperations keeps all operations, and gives what a person should know of the file.
func readOperations(ctx context.Context, o CompareOptions) ([]*recon.Operation, []string, error) {
	var read records[recon.Operation]
	notes, err := eachOperation(ctx, o, func(line int, op *recon.Operation) { read.add(*op, line) }, nil)
	if err != nil {
		return nil, nil, err
	}
	operations, err := checkOperations(fileName(o.OperationsName, "operations"), read)
	return operations, notes, err
}

// eachOperation reads the operations, or those that are wanted, and gives what a person should
// know of the file.
func eachOperation(ctx context.Context, o CompareOptions, take func(line int, op *recon.Operation), wanted files.Wanted) ([]string, error) {
	name, only := fileName(o.OperationsName, "operations"), onlyAccounts(o.Policies)
	if !o.OperationsTable {
		return nil, eachLine(ctx, o.Operations, name, func(n int, line []byte) error {
			if wanted != nil && wanted(n) != n {
				return nil
			}
			op, err := recon.ParseOperationIn(line, only)
			if err != nil {
				return err
			}
			op.Metadata = nil // takes no part in a comparison
			take(n, &op)
			return nil
		})
	}
	rows := files.OpenOperations(o.Operations, name, only)
	rows.Only(wanted)
	var op recon.Operation
	for n := 1; rows.Next(&op); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		take(rows.Line(), &op)
	}
	return notesOf(name, rows.Notes(), rows.Encoding()), rows.Err()
}

// checkOperations refuses operations that stand twice, and groups in several currencies.
func checkOperations(name string, read records[recon.Operation]) ([]*recon.Operation, error) {
	first := make(map[recon.OperationID]int32, len(read.all))
	for i, op := range read.all {
		if line, again := first[op.ID]; again {
			return nil, fmt.Errorf("%s line %d: operation %s stands on line %d already; every operation has one line, so remove one of them", name, read.lines[i], op.ID, line)
		}
		first[op.ID] = read.lines[i]
	}
	var groups ledger.OneCurrency
	for i, op := range read.all {
		if err := groups.Check(op, int(read.lines[i])); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, read.lines[i], err)
		}
	}
	return read.all, nil
}
