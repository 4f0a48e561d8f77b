package main

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

// known NAME KIND OPERATION puts the id of the finding of that kind on an operation into
// a variable.
func known(ctx context.Context, ts *testscript.TestScript, args []string) {
	if len(args) != 3 {
		ts.Fatalf("known NAME KIND OPERATION")
	}
	conn, err := pgx.Connect(ctx, ts.Getenv("RECONCILER_DATABASE_URL"))
	ts.Check(err)
	defer conn.Close(ctx)
	var id string
	ts.Check(conn.QueryRow(ctx, `SELECT finding_id FROM reconciler.findings
		WHERE tenant = 'default' AND kind = $1 AND operation_ids = ARRAY[$2::text]`, args[1], args[2]).Scan(&id))
	ts.Setenv(args[0], id)
}
