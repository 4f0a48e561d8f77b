package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options says which database to open.
type Options struct {
	// URL is a PostgreSQL connection string. It may hold a password, so it is never
	// printed, not even in part.
	URL string
	// Tenant is the tenant that the caller expects; empty takes the one that the
	// database role names (default: "default"). Another one than the role's is refused.
	Tenant string
	// MaxConns bounds the pool; 0 means 8.
	MaxConns int32
	// Tracer sees every statement; for benchmarks and tests that count them.
	Tracer pgx.QueryTracer
}

// Ledger is the record. It may be used by many goroutines at once.
type Ledger struct {
	pool   *pgxpool.Pool
	tenant string
}

// Open connects, checks that the database has the schema that this program knows,
// and finds the tenant. Errors name the place and the next step, and hold no secret.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	panic("ledger: being written")
}

// Close releases all connections.
func (l *Ledger) Close() { l.pool.Close() }

// Tenant is the tenant that all rows of this ledger belong to.
func (l *Ledger) Tenant() string { return l.tenant }

// Now reads the database's clock, which alone judges leases. It is simulated in a
// database that was created with simulated time.
func (l *Ledger) Now(ctx context.Context) (time.Time, error) {
	panic("ledger: being written")
}
