package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// fullFor is how long a server without a free connection is left alone.
const fullFor = 30 * time.Second

var errAddress = errors.New("url is no connection string; write it like postgres://reader:PASSWORD@db.example.com/shop")

// schemaError says that a table is not what the settings say. It names the place and the
// next step.
type schemaError struct{ text string }

func (e *schemaError) Error() string { return e.text }

func schemaFault(format string, args ...any) error { return &schemaError{fmt.Sprintf(format, args...)} }

// rowError says that a row is not what the settings say. It quotes nothing of it.
type rowError struct {
	role string
	err  error
}

func (e *rowError) Error() string { return "columns." + e.role + ": " + e.err.Error() }

// tooManyError says that more, or longer, rows came than one request may bring.
type tooManyError struct{}

func (tooManyError) Error() string {
	return fmt.Sprintf("more than %d rows, or %d MiB of them, answer one request; not all were read", maxRows, maxBytes>>20)
}

// behindError says that a standby has not replayed what the lag promises. One whose primary
// writes nothing looks the same, and is not told apart: it may as well have lost it.
type behindError struct {
	replayed *time.Time
	now      time.Time
	allowed  time.Duration
}

// tooFarBehind holds what a standby replayed last against how far it may be behind.
func tooFarBehind(replayed *time.Time, now time.Time, allowed time.Duration) error {
	if replayed != nil && now.Sub(*replayed) <= allowed {
		return nil
	}
	return &behindError{replayed: replayed, now: now, allowed: allowed}
}

func (e *behindError) Error() string {
	if e.replayed == nil {
		return "the server is a standby that has replayed nothing since it started; name the primary, or wait"
	}
	return fmt.Sprintf("the server is a standby, and the last that it replayed is %s old; the settings promise %s: name the primary, or a longer lag",
		recon.Duration(e.now.Sub(*e.replayed)).Text(), recon.Duration(e.allowed).Text())
}

// tell says what kind of fault an error is, and what may be said of it: no address, no
// value, nothing that a row holds.
func tell(err error) (sources.Kind, error) {
	var refused *pgconn.PgError
	var schema *schemaError
	var row *rowError
	var tooMany tooManyError
	var behind *behindError
	var timeout net.Error
	var unconnected *pgconn.ConnectError
	switch {
	case errors.Is(err, errAddress):
		return sources.OwnBug, errAddress
	case errors.As(err, &schema), errors.As(err, &row):
		return sources.Malformed, err
	case errors.As(err, &tooMany):
		return sources.Truncated, err
	case errors.As(err, &behind):
		return sources.Unavailable, err
	case errors.As(err, &refused):
		return byCode(refused)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return sources.Timeout, errors.New("no answer in time")
	case errors.As(err, &unconnected), errors.As(err, &timeout):
		return sources.Unavailable, errors.New("the server cannot be reached")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed), pgconn.SafeToRetry(err):
		return sources.Unavailable, errors.New("the connection was lost")
	}
	return sources.Malformed, errors.New("the reply is not what PostgreSQL says")
}

// byCode sorts what the server refused by its class. Only classes whose messages name
// nothing but objects of the catalogue and roles are quoted.
func byCode(e *pgconn.PgError) (sources.Kind, error) {
	quoted := fmt.Errorf("%s (SQLSTATE %s)", e.Message, e.Code)
	bare := fmt.Errorf("SQLSTATE %s", e.Code)
	switch e.Code {
	case "42501": // also: rows that row-level security would hide
		return sources.BadCredentials, quoted
	case "42601", "25006": // our own statement
		return sources.OwnBug, quoted
	case "53300":
		return sources.RateLimited, errors.New("the server has no connection free (SQLSTATE 53300)")
	case "55P03":
		return sources.Timeout, errors.New("a lock on the table was not free in time (SQLSTATE 55P03)")
	case "57014", "25P03":
		return sources.Timeout, errors.New("the statement took too long; is what is looked for indexed? (SQLSTATE " + e.Code + ")")
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "28":
		return sources.BadCredentials, quoted
	case "3D", "42", "3F":
		return sources.Malformed, quoted
	case "08", "40", "53", "54", "55", "57", "58", "XX", "F0":
		return sources.Unavailable, bare
	}
	return sources.Malformed, bare
}
