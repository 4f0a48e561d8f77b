package main

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
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

// login NAME GROUP makes a role that logs in with the rights of a group role, and puts
// its name into NAME and its database URL into NAME_URL.
func login(ctx context.Context, ts *testscript.TestScript, args []string) {
	if len(args) != 2 {
		ts.Fatalf("login NAME GROUP")
	}
	admin := ts.Getenv("RECONCILER_DATABASE_URL")
	role := "script_" + strings.ToLower(rand.Text()[:12])
	exec := func(ctx context.Context, statement string) {
		conn, err := pgx.Connect(ctx, admin)
		ts.Check(err)
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, statement)
		ts.Check(err)
	}
	exec(ctx, `CREATE ROLE `+role+` LOGIN PASSWORD 'script' IN ROLE `+args[1])
	ts.Defer(func() { exec(context.WithoutCancel(ctx), `DROP ROLE `+role) })
	u, err := url.Parse(admin)
	ts.Check(err)
	u.User = url.UserPassword(role, "script")
	ts.Setenv(args[0], role)
	ts.Setenv(args[0]+"_URL", u.String())
}

// effectid NAME CHARGE puts the id of the newest refund of a charge at the fake Stripe
// into a variable.
func effectid(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("effectid NAME CHARGE")
	}
	s := *ts.Value(stripeKey{}).(**stripetest.Server)
	for _, r := range s.Refunds() {
		if r.Charge == args[1] {
			ts.Setenv(args[0], r.ID)
		}
	}
}
