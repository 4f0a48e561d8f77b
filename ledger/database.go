package ledger

import "github.com/jackc/pgx/v5/pgxpool"

// Pool gives the connections of this ledger to another room of the same database. It is
// closed with the ledger.
func (l *Ledger) Pool() *pgxpool.Pool { return l.pool }

// Fault makes of a driver's error one that is ready for an operator, as for the ledger's
// own statements; nil stays nil.
func (l *Ledger) Fault(op string, err error) error { return l.fault(op, err) }
