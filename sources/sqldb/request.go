package sqldb

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// tx is a transaction that can only read.
type tx = pgx.Tx

// asking is the state of one Ask, Page, Probe or Testify: one connection, which ends with it,
// and what was learned so far.
type asking struct {
	*Source
	*sources.Notes
	now     func() time.Time
	conn    *pgx.Conn
	tables  map[string]*relation // by kind, as the catalogue shows them now
	calls   int
	faults  int            // requests in a row that brought no answer
	stopped *sources.Error // why nothing more is asked
}

func (s *Source) asking(now func() time.Time) *asking {
	return &asking{Source: s, Notes: sources.NewNotes(s.name), now: now, tables: map[string]*relation{}}
}

// request is one transaction.
type request struct {
	name string // for people and metrics: "SELECT refund by_id"
	// behind is how far a standby may be behind; 0: it does not matter.
	behind time.Duration
	run    func(ctx context.Context, tx tx) error
}

// halted gives why nothing more is asked, or nil.
func (a *asking) halted() *sources.Error {
	switch quiet := a.memory.Quiet(); {
	case a.stopped != nil:
	case a.now().Before(quiet):
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("the server has no connection free and is asked again at "+quiet.UTC().Format(time.RFC3339)))
	case a.calls >= maxCalls:
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("the batch needs more requests than one Ask may make"))
	}
	return a.stopped
}

// do makes one request of the batch, unless the batch was given up. asked says whether one
// was made. An error means that the context ended.
func (a *asking) do(ctx context.Context, r request) (asked bool, fault *sources.Error, err error) {
	if fault := a.halted(); fault != nil {
		return false, fault, nil
	}
	if err := a.limiter.Wait(ctx); err != nil {
		return false, nil, err
	}
	cause := a.transact(ctx, r)
	if ctx.Err() != nil {
		return true, nil, ctx.Err()
	}
	a.calls++
	if cause == nil {
		a.faults = 0
		a.onRequest(r.name, "ok")
		return true, nil, nil
	}
	kind, text := tell(cause)
	fault = a.fault(r.name, kind, text)
	a.onRequest(r.name, string(kind))
	if kind == sources.RateLimited {
		fault.RetryAfter = fullFor
		a.memory.KeepQuiet(a.now().Add(fullFor))
		a.stopped = fault
	}
	if a.faults++; a.faults >= maxFaults {
		a.stopped = fault
	}
	return true, fault, nil
}

// transact runs a request in a transaction of its own that can only read. What fails takes
// the connection with it: nothing is known of its state.
func (a *asking) transact(ctx context.Context, r request) (err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err := a.connect(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			a.close(ctx)
		}
	}()
	if err := a.current(ctx, r.behind); err != nil {
		return err
	}
	t, err := a.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	if err := a.prepare(ctx, t); err != nil {
		return err
	}
	if err := r.run(ctx, t); err != nil {
		return err
	}
	return t.Rollback(ctx)
}

func (a *asking) connect(ctx context.Context) error {
	if a.conn != nil {
		return nil
	}
	config, err := pgx.ParseConfig(a.settings.URL.Reveal())
	if err != nil {
		return errAddress // the library's text quotes the address
	}
	config.ConnectTimeout = a.settings.ConnectTimeout.Std()
	// Statements differ from batch to batch, and poolers forget prepared ones.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "reconciler"
	}
	a.conn, err = pgx.ConnectConfig(ctx, config)
	return err
}

// close gives the connection back. It waits for nobody.
func (a *asking) close(ctx context.Context) {
	if a.conn == nil {
		return
	}
	// The request's context may have ended; a farewell of a second is enough.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = a.conn.Close(ctx) // the server notices a lost connection by itself
	a.conn = nil
}

// prepareSQL bounds the transaction. With
// row_security off PostgreSQL refuses a statement from which it would hide rows: what is
// hidden must not look like what is not there.
const prepareSQL = `
SELECT pg_catalog.set_config('search_path', 'pg_catalog', true),
	pg_catalog.set_config('statement_timeout', $1::text, true),
	pg_catalog.set_config('lock_timeout', $2::text, true),
	pg_catalog.set_config('idle_in_transaction_session_timeout', $1::text, true),
	pg_catalog.set_config('row_security', 'off', true)`

const standbySQL = `
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_xact_replay_timestamp(), pg_catalog.clock_timestamp()`

func (a *asking) prepare(ctx context.Context, t tx) error {
	millis := func(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
	_, err := t.Exec(ctx, prepareSQL, millis(a.settings.StatementTimeout.Std()), millis(a.settings.LockTimeout.Std()))
	return err
}

// current asks how far a standby is behind, before the transaction begins: what had been
// replayed by then is in what the transaction sees. Asked within it, the answer could be of
// what came after.
func (a *asking) current(ctx context.Context, behind time.Duration) error {
	if behind == 0 {
		return nil
	}
	var standby bool
	var replayed *time.Time
	var now time.Time
	if err := a.conn.QueryRow(ctx, standbySQL).Scan(&standby, &replayed, &now); err != nil {
		return err
	}
	if !standby {
		return nil
	}
	return tooFarBehind(replayed, now, behind)
}
