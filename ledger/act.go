package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// actTries bounds how often an acting call is run again after another transaction
// was in its way.
const actTries = 3

// The calls of the acting side carry no rule of their own: the three SQL functions
// hold them all, for callers in any language.
const (
	openSQL   = `SELECT reconciler.open_operation($1::jsonb)`
	claimSQL  = `SELECT reconciler.claim_operation($1::jsonb)`
	finishSQL = `SELECT reconciler.finish_attempt($1::jsonb)`
)

// OpenRequest is one intent. Action, Target and Request are needed; zero values of the
// others are left out. Key, or Case and Step, make a repeat the same operation.
type OpenRequest struct {
	Action    string            `json:"action"`
	Target    string            `json:"target"`
	Request   json.RawMessage   `json:"request"` // what is sent to the provider, at most 64 KiB, whole numbers only
	Amount    int64             `json:"amount,omitempty"`
	Currency  string            `json:"currency,omitempty"`
	Parent    string            `json:"parent,omitempty"`
	Account   string            `json:"account,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Key       string            `json:"key,omitempty"`
	Case      string            `json:"case,omitempty"`
	Step      *int64            `json:"step,omitempty"`
	ID        recon.OperationID `json:"id,omitempty"`
	Reference string            `json:"reference,omitempty"`
	Group     string            `json:"group,omitempty"`
	Run       string            `json:"run,omitempty"`
	ToolCall  string            `json:"tool_call,omitempty"`
	Metadata  json.RawMessage   `json:"metadata,omitempty"`
	Agent     string            `json:"agent,omitempty"`
}

// OpenAnswer says which operation the intent is. Rejected ones have none.
type OpenAnswer struct {
	OperationID recon.OperationID `json:"operation_id"`
	Key         string            `json:"key"`
	State       recon.State       `json:"state"`
	Verdict     string            `json:"verdict"` // new, existing, open_elsewhere, conflict, rejected
	Already     Already           `json:"already"`
	Reason      string            `json:"reason"`
	Result      json.RawMessage   `json:"result"`
}

// Already sums the other operations for the same action, target and currency, in
// minor units.
type Already struct {
	Succeeded json.Number `json:"succeeded"`
	Open      json.Number `json:"open"`
}

// ClaimRequest asks for the right to send one operation, or the longest-waiting one of
// an action.
type ClaimRequest struct {
	OperationID  recon.OperationID `json:"operation_id,omitempty"`
	Action       string            `json:"action,omitempty"`
	Holder       string            `json:"holder"`
	Call         string            `json:"call,omitempty"`
	LeaseSeconds int64             `json:"lease_seconds,omitempty"` // 0: the policy's longest
	OwnWrite     bool              `json:"own_write,omitempty"`
}

// ClaimAnswer says whether the caller may send, until when, and otherwise how the
// operation stands.
type ClaimAnswer struct {
	Claimed           bool              `json:"claimed"`
	OperationID       recon.OperationID `json:"operation_id"`
	Key               string            `json:"key"`
	Request           json.RawMessage   `json:"request"`
	Marker            Marker            `json:"marker"`
	Token             string            `json:"token"`
	Attempt           int               `json:"attempt"`
	LeaseUntil        time.Time         `json:"lease_until"`
	SendBefore        time.Time         `json:"send_before"`         // by the database's clock
	SendWithinSeconds float64           `json:"send_within_seconds"` // the same, from the claim on
	InDoubt           bool              `json:"in_doubt"`            // an earlier attempt may have had an effect
	State             recon.State       `json:"state"`
	Verdict           string            `json:"verdict"`
	Final             bool              `json:"final"`
	Note              string            `json:"note"`
	Reason            string            `json:"reason"`
	RetryAfterSeconds int               `json:"retry_after_seconds"` // 0: not said
	Result            json.RawMessage   `json:"result"`
}

// Marker is what the sender puts into the provider's metadata, by which the effect is
// found again.
type Marker struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FinishRequest tells what came of an attempt.
type FinishRequest struct {
	OperationID recon.OperationID  `json:"operation_id"`
	Token       string             `json:"token"`
	Class       recon.AttemptClass `json:"class"`
	EffectID    string             `json:"effect_id,omitempty"`
	Result      json.RawMessage    `json:"result,omitempty"`
	ErrorCode   string             `json:"error_code,omitempty"`
	RequestID   string             `json:"request_id,omitempty"`
}

// FinishAnswer says where the operation stands now. Applied is false for a late answer:
// it was kept as evidence and changed nothing.
type FinishAnswer struct {
	State             recon.State `json:"state"`
	Verdict           string      `json:"verdict"`
	Final             bool        `json:"final"`
	Applied           bool        `json:"applied"`
	Note              string      `json:"note"`
	RetryAfterSeconds int         `json:"retry_after_seconds"` // 0: not said
}

// OpenOperation records an intent before anything is sent, or says which operation
// already is it. Input that the ledger refuses is a *UsageError.
func (l *Ledger) OpenOperation(ctx context.Context, r OpenRequest) (OpenAnswer, error) {
	return act[OpenAnswer](ctx, l, "open an operation", openSQL, r)
}

// Claim takes the right to send for the length of a lease, or says how the operation
// stands.
func (l *Ledger) Claim(ctx context.Context, r ClaimRequest) (ClaimAnswer, error) {
	return act[ClaimAnswer](ctx, l, "claim an operation", claimSQL, r)
}

// Finish tells what came of an attempt. Only the holder of the live lease changes
// anything.
func (l *Ledger) Finish(ctx context.Context, r FinishRequest) (FinishAnswer, error) {
	return act[FinishAnswer](ctx, l, "finish an attempt", finishSQL, r)
}

// act runs one function as one statement. When another transaction was in the way, or
// the role's transactions are stricter than READ COMMITTED, it runs again in one that
// says its level.
func act[T any](ctx context.Context, l *Ledger, op, sql string, request any) (answer T, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err = call[T](ctx, l.pool, sql, request)
	for n := 1; n < actTries && conflicting(err); n++ {
		err = l.inTx(ctx, func(tx pgx.Tx) error {
			answer, err = call[T](ctx, tx, sql, request)
			return err
		})
	}
	return answer, actFault(l.place, op, err)
}

// call runs one function.
func call[T any](ctx context.Context, q querier, sql string, request any) (answer T, err error) {
	in, err := encode(request)
	if err != nil {
		return answer, &UsageError{"its JSON cannot be written: " + err.Error()}
	}
	var out []byte
	if err := q.QueryRow(ctx, sql, string(in)).Scan(&out); err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(out, &answer)
}

func conflicting(err error) bool { return isKind(faultAt("", "", err), FaultConflict) }

// actFault shows what the functions say of the input: they name fields and say what to
// do. All else may quote rows and becomes a [Fault].
func actFault(place, op string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "22023" && pg.Hint != "" {
		return &UsageError{pg.Message + ". " + pg.Hint}
	}
	return faultAt(place, op, err)
}

// SetSimulatedTime moves the clock of a database that was created with simulated time.
// A real database has a real clock, and says so.
func (l *Ledger) SetSimulatedTime(ctx context.Context, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := l.pool.Exec(ctx, `UPDATE reconciler.simulated_time SET at = $1`, stored(now))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" {
		return &UsageError{"this database has a real clock: only one that was made with simulated time can be told the time"}
	}
	return l.fault("set the simulated time", err)
}
