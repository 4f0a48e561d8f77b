package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

const (
	connectTimeout = 10 * time.Second
	// callTimeout bounds every call whose context has no end of its own, so that a
	// database that accepts a connection and then says nothing never hangs a sweep.
	callTimeout = 2 * time.Minute
)

// Options says which database to open.
type Options struct {
	// URL is a PostgreSQL connection string. It may hold a password, so it is never
	// printed, not even in part.
	URL string
	// Tenant is the tenant that the caller expects; empty takes the one that the
	// database role names (default: "default"). Another one than the role's is refused.
	Tenant string
	// MaxConns bounds the pool; 0 takes the URL's pool_max_conns, or four.
	MaxConns int32
	// Tracer sees every statement; for benchmarks and tests that count them.
	Tracer pgx.QueryTracer
}

// Ledger is the record. It may be used by many goroutines at once.
type Ledger struct {
	pool   *pgxpool.Pool
	tenant string
	place  string // host:port/database, for errors
}

// Open connects, checks that the database has the schema that this program knows,
// and finds the tenant. Errors name the place and the next step, and hold no secret.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	cfg, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, faultAt("", "open the ledger", err)
	}
	l := &Ledger{pool: pool, place: place(cfg.ConnConfig)}
	if err := l.greet(ctx, o.Tenant); err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

// poolConfig reads the URL. The driver's own error quotes it, so it is not shown.
func poolConfig(o Options) (*pgxpool.Config, error) {
	if o.URL == "" {
		return nil, &UsageError{"no database: give --database-url or set RECONCILER_DATABASE_URL"}
	}
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, &UsageError{"the database URL cannot be read: write it as postgres://role@host:port/database, with special characters of the password percent-encoded"}
	}
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	// Unnamed statements with cached descriptions work behind poolers that give every
	// transaction another connection, and each run is planned for its own parameters. A
	// URL that names another mode means it.
	if !strings.Contains(o.URL, "default_query_exec_mode=") {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	cfg.ConnConfig.Tracer = o.Tracer
	cfg.ConnConfig.BuildFrontend = buildFrontend
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "reconciler"
	}
	return cfg, nil
}

// greet makes the first contact: schema, then tenant.
func (l *Ledger) greet(ctx context.Context, tenant string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return l.fault("open the ledger", err)
	}
	defer conn.Release()
	if err := migrations.Check(ctx, conn.Conn()); err != nil {
		return l.schemaFault(err)
	}
	const ask = `SELECT coalesce(nullif(current_setting('reconciler.tenant', true), ''), 'default')`
	if err := conn.QueryRow(ctx, ask).Scan(&l.tenant); err != nil {
		return l.fault("find the tenant", err)
	}
	if tenant != "" && tenant != l.tenant {
		return &UsageError{fmt.Sprintf("this database role serves tenant %q and the configuration says %q: "+
			"ALTER ROLE … SET reconciler.tenant, or correct `tenant`", l.tenant, tenant)}
	}
	return nil
}

// schemaFault passes on what the schema check says of the database, and cleans the rest.
func (l *Ledger) schemaFault(err error) error {
	var encoding *migrations.Encoding
	var behind *migrations.Behind
	var newer *migrations.Newer
	if errors.As(err, &encoding) || errors.As(err, &behind) || errors.As(err, &newer) {
		return fmt.Errorf("database %s: %w", l.place, err)
	}
	return l.fault("check the schema", err)
}

// Close releases all connections.
func (l *Ledger) Close() { l.pool.Close() }

// Tenant is the tenant that all rows of this ledger belong to.
func (l *Ledger) Tenant() string { return l.tenant }

// Now reads the database's clock, which alone judges leases. It is simulated in a
// database that was created with simulated time.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	now, err := clock(ctx, l.pool)
	return now, l.fault("read the database's clock", err)
}

// querier is what the pool and a transaction have in common.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// send makes the statements of a batch in one round trip, and none where it is empty. They
// run in their order, each seeing what the others before it did and what was committed by then.
func send(ctx context.Context, q interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

// eachRow gives what reads the rows of a batch's statement into the same variables and
// calls f after each.
func eachRow(into []any, f func() error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, f)
		return err
	}
}

// clock is read once per call and passed on, so that it never stands inside a
// statement: there it would be another instant on every row or node.
func clock(ctx context.Context, q querier) (time.Time, error) {
	var now time.Time
	err := q.QueryRow(ctx, `SELECT reconciler.clock()`).Scan(&now)
	return now.UTC(), err
}

// inTx runs f in one transaction at READ COMMITTED, which row locks make enough.
// Whatever ends f early, the transaction is rolled back as a whole.
func (l *Ledger) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer func() {
		// The caller's context may have ended, which is when this matters most. The
		// driver closes a connection that it cannot roll back in time.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(end) // after a commit there is nothing to roll back
	}()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// bounded gives the context an end if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTimeout)
}

// place names a database without role, password or options.
func place(c *pgx.ConnConfig) string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) + "/" + c.Database
}
