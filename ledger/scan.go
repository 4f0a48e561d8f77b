package ledger

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The vocabulary says "not known" with zero values; the tables say it with NULL.
// These scanners are the one place where NULL becomes zero.

type textInto[T ~string] struct{ p *T }

func (t textInto[T]) ScanText(v pgtype.Text) error {
	*t.p = T(v.String)
	return nil
}

func text[T ~string](p *T) textInto[T] { return textInto[T]{p} }

type instantInto struct{ p *time.Time }

func (t instantInto) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t.p = time.Time{}
	if v.Valid {
		*t.p = v.Time.UTC()
	}
	return nil
}

func instant(p *time.Time) instantInto { return instantInto{p} }

type numberInto[T ~int | ~int64] struct{ p *T }

func (t numberInto[T]) ScanInt64(v pgtype.Int8) error {
	*t.p = T(v.Int64)
	return nil
}

func number[T ~int | ~int64](p *T) numberInto[T] { return numberInto[T]{p} }

// orNull gives nil, which is NULL, for the zero instant.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = stored(t)
	return &t
}

// stored cuts an instant to what PostgreSQL keeps, so that what is written, hashed
// and compared is the same as what is read back.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// encode writes JSON as people read it: without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// texts gives typed texts as the driver knows them.
func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = string(s)
	}
	return out
}

// typed is the inverse of texts.
func typed[T ~string](in []string) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i, s := range in {
		out[i] = T(s)
	}
	return out
}

// operationColumns is what becomes a recon.Operation, in the order of
// operationFields. The table's alias is o.
const operationColumns = `o.operation_id, o.source, o.action, o.target, o.parent, o.key, o.amount, o.currency, o.state,
	o.created_at, o.sent_at, o.closed_at, o.effect_id, o.account, o.mode, o.reference, o."group", o.run, o.tool_call,
	o."case", o.step, o.error_code, o.marks, o.metadata, o.version, o.unknown_since, o.lease_until, o.key_expires_at,
	o.last_class, o.in_doubt, o.attempts, o.released, o.policy_version`

func operationFields(o *recon.Operation, marks *[]string) []any {
	return []any{
		text(&o.ID), text(&o.Source), text(&o.Action), text(&o.Target), text(&o.Parent), text(&o.Key),
		number(&o.Money.Minor), text(&o.Money.Currency), text(&o.State),
		instant(&o.CreatedAt), instant(&o.SentAt), instant(&o.ClosedAt), text(&o.EffectID), text(&o.Account), text(&o.Mode),
		text(&o.Reference), text(&o.Group), text(&o.Run), text(&o.ToolCall), text(&o.Case), &o.Step, text(&o.ErrorCode),
		marks, (*[]byte)(&o.Metadata), &o.Version, instant(&o.UnknownSince), instant(&o.LeaseUntil), instant(&o.KeyExpiresAt),
		text(&o.LastClass), &o.InDoubt, number(&o.Attempts), &o.Released, number(&o.PolicyVersion),
	}
}

// effectColumns is what becomes a recon.Effect, in the order of effectFields. The
// table's alias is e.
const effectColumns = `e.system, e.account, e.mode, e.id, e.source, e.kind, e.status, e.amount, e.currency, e.parent,
	e.other_parents, e.target, e.reference, e.natural_reference, e.key, e.created_at, e.updated_at, e.fee, e.net,
	e.settlement_amount, e.settlement_currency, e.created_by, e.failure_reason, e.caused_by, e.parent_total, e.metadata,
	e.owner, e.needs_read`

func effectFields(e *recon.Effect) []any {
	return []any{
		text(&e.System), text(&e.Account), text(&e.Mode), text(&e.ID), text(&e.Source), text(&e.Kind), text(&e.Status),
		number(&e.Money.Minor), text(&e.Money.Currency), text(&e.Parent), &e.OtherParents, text(&e.Target), text(&e.Reference),
		text(&e.NaturalReference), text(&e.Key), instant(&e.CreatedAt), instant(&e.UpdatedAt), &e.Fee, &e.Net,
		number(&e.Settlement.Minor), text(&e.Settlement.Currency), text(&e.CreatedBy), text(&e.FailureReason), text(&e.CausedBy),
		&e.ParentTotal, (*[]byte)(&e.Metadata), text(&e.Owner), &e.NeedsRead,
	}
}
