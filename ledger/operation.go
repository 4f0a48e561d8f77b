package ledger

import (
	"context"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const operationSQL = `
SELECT ` + operationColumns + `
FROM reconciler.operations o
WHERE o.tenant = $1 AND o.operation_id = $2`

// Operation reads one operation (*NotFoundError), without its story.
func (l *Ledger) Operation(ctx context.Context, id recon.OperationID) (recon.Operation, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var o recon.Operation
	var marks []string
	err := l.pool.QueryRow(ctx, operationSQL, l.tenant, string(id)).Scan(operationFields(&o, &marks)...)
	if isNoRows(err) {
		return o, &NotFoundError{What: "operation", ID: string(id)}
	}
	o.Marks = typed[recon.Mark](marks)
	return o, l.fault("read operation "+string(id), err)
}
