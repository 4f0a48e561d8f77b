package ledger

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// FaultKind says what kind of fault a database had, and with that what to do.
type FaultKind string

const (
	FaultUnreachable FaultKind = "unreachable" // not there, or gone: try again later
	FaultCredentials FaultKind = "credentials" // it refuses the login
	FaultSchema      FaultKind = "schema"      // tables or functions are missing
	FaultPrivilege   FaultKind = "privilege"   // the role may not do this
	FaultTimeout     FaultKind = "timeout"     // a statement took too long, or waited too long for a lock
	FaultConflict    FaultKind = "conflict"    // serialization or deadlock: the same again may work
	FaultData        FaultKind = "data"        // it refuses what we wanted to store
	// FaultUnconfirmed: it was committed, and its synchronous standby never said that it has it.
	// Should that machine be lost it is gone: nothing may be done on the strength of it. Asking
	// the same again is answered once everything before is on the standby.
	FaultUnconfirmed FaultKind = "unconfirmed"
	FaultOther       FaultKind = "other"
)

// Fault is a database error, ready for an operator. Its text names the place and the
// next step, and never holds a password, a parameter or a row's content: the
// server's own sentence is left out because it may quote them.
type Fault struct {
	Op     string // what was being tried: "record a batch"
	Kind   FaultKind
	Code   string // SQLSTATE, where the server answered
	Place  string // host:port/database
	Detail string // a constraint's name or the like
	err    error
}

func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.Op + ": ")
	switch f.Kind {
	case FaultUnreachable:
		b.WriteString("database " + f.Place + " cannot be reached" + f.paren() + ": check that it runs and that the database URL is right")
	case FaultCredentials:
		b.WriteString("database " + f.Place + " refuses the login" + f.paren() + ": check role, password and database in the database URL")
	case FaultSchema:
		b.WriteString("database " + f.Place + " lacks a table or a function" + f.paren() + ": run `reconciler migrate up`")
	case FaultPrivilege:
		b.WriteString("the database role may not do this" + f.paren() + ": whoever administers the database grants it reconciler_daemon for runs, imports and the inbox, reconciler_viewer to read")
	case FaultTimeout:
		b.WriteString("database " + f.Place + " did not answer in time" + f.paren() + ": look for long transactions and locks in pg_stat_activity")
	case FaultConflict:
		b.WriteString("others changed the same rows at the same time" + f.paren() + ": run it again")
	case FaultData:
		b.WriteString("the database refuses the data" + f.paren())
	case FaultUnconfirmed:
		b.WriteString("it is in database " + f.Place + " and perhaps not on its standby, for which the commit waited until somebody ended the wait" +
			f.paren() + ": do nothing on the strength of it, look after the standby, and ask for the same again")
	default:
		b.WriteString("database " + f.Place + " failed" + f.paren() + ": its own log says more")
	}
	return b.String()
}

func (f *Fault) paren() string {
	parts := make([]string, 0, 2)
	if f.Detail != "" {
		parts = append(parts, f.Detail)
	}
	if f.Code != "" {
		parts = append(parts, "SQLSTATE "+f.Code)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Unwrap gives the driver's error to errors.As. Its text is not for people.
func (f *Fault) Unwrap() error { return f.err }

// fault turns what the driver says into a Fault, and leaves alone what is already
// one of our own errors. An ended context stays recognisable by errors.Is.
func (l *Ledger) fault(op string, err error) error {
	return faultAt(l.place, op, err)
}

func faultAt(place, op string, err error) error {
	if err == nil || ours(err) {
		return err
	}
	f := &Fault{Op: op, Kind: FaultOther, Place: place, err: err}
	var pg *pgconn.PgError
	var nerr net.Error
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &pg):
		f.Code = pg.Code
		f.Kind = kindOf(pg.Code)
		f.Detail = detailOf(pg)
		if pg.Routine == waitRoutine {
			f.Kind = FaultUnconfirmed
		}
	case errors.Is(err, context.DeadlineExceeded):
		f.Kind = FaultTimeout
	case errors.Is(err, context.Canceled):
		f.Detail = "interrupted"
	case errors.As(err, &connect), errors.As(err, &nerr), pgconn.SafeToRetry(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		f.Kind = FaultUnreachable
		f.Detail = "connection lost"
		var op *net.OpError
		if errors.As(err, &op) && op.Err != nil {
			f.Detail = op.Err.Error()
		}
	}
	return f
}

// ours tells the package's own errors, whose texts are already ready for people.
func ours(err error) bool {
	var (
		fault     *Fault
		held      *HeldError
		stale     *StaleHoldError
		running   *RunningError
		tick      *TickError
		abandoned *AbandonedError
		missing   *NotFoundError
		usage     *UsageError
		open      *OpenOperationsError
	)
	return errors.As(err, &fault) || errors.As(err, &held) || errors.As(err, &stale) || errors.As(err, &running) ||
		errors.As(err, &tick) || errors.As(err, &abandoned) || errors.As(err, &missing) || errors.As(err, &usage) || errors.As(err, &open)
}

// kindOf sorts SQLSTATEs by what an operator can do about them.
func kindOf(code string) FaultKind {
	switch code {
	case "3D000":
		return FaultCredentials
	case "42P01", "42703", "42883", "3F000":
		return FaultSchema
	case "42501":
		return FaultPrivilege
	case "57014", "55P03", "25P03":
		return FaultTimeout
	case "40001", "40P01":
		return FaultConflict
	case "57P01", "57P02", "57P03":
		return FaultUnreachable
	}
	if len(code) < 2 {
		return FaultOther
	}
	switch code[:2] {
	case "28":
		return FaultCredentials
	case "08", "53":
		return FaultUnreachable
	case "22", "23", "54", "P0":
		return FaultData
	}
	return FaultOther
}

// detailOf gives what of a server's error is safe to show. Texts that our own
// triggers raise name operations, states and columns only.
func detailOf(pg *pgconn.PgError) string {
	switch {
	case pg.Code == "P0001", pg.Code == "23514" && pg.ConstraintName == "":
		return pg.Message
	case pg.ConstraintName != "":
		return "constraint " + pg.ConstraintName
	case pg.Code == "22P05" || pg.Code == "22021":
		return "a character that PostgreSQL cannot store, such as U+0000"
	case pg.Code[:min(2, len(pg.Code))] == "54":
		return "a value that is too long"
	case pg.Code == "25006":
		return "it is a read-only standby; connect to the primary"
	case pg.TableName != "":
		return "table " + pg.TableName
	}
	return ""
}

// Passing reports whether a database error may go by itself, so that the same may be tried
// again.
func Passing(err error) bool {
	return isKind(err, FaultUnreachable) || isKind(err, FaultTimeout) || isKind(err, FaultConflict) || isKind(err, FaultUnconfirmed)
}

// isKind reports whether err is a Fault of that kind.
func isKind(err error, k FaultKind) bool {
	var f *Fault
	return errors.As(err, &f) && f.Kind == k
}

// isUnique reports whether a statement was refused by a unique index. The name is
// compared as a prefix: distributed tables append a number to it.
func isUnique(err error, index string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" &&
		(strings.HasPrefix(pg.ConstraintName, index) || strings.Contains(pg.Message, "\""+index))
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
