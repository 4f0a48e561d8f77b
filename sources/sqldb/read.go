package sqldb

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var (
	firstTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	endTime   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

	errEmpty = errors.New("a row holds nothing there")
)

// record is a row as it was read: texts and times by the name of their role. What is NULL is
// not in it.
type record struct {
	text map[string]string
	at   map[string]time.Time
	err  error // the first fault
}

// records reads the rows of a statement that shows the roles in their order.
func records(rows pgx.Rows, r *relation, roles []role) ([]*record, error) {
	defer rows.Close()
	texts, times, into := make([]*string, len(roles)), make([]*time.Time, len(roles)), make([]any, len(roles))
	for i, role := range roles {
		into[i] = &texts[i]
		if r.isTime(role.column) {
			into[i] = &times[i]
		}
	}
	var list []*record
	size := 0
	for rows.Next() {
		if len(list) == maxRows {
			return nil, tooManyError{}
		}
		clear(texts)
		clear(times)
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		rec := &record{text: map[string]string{}, at: map[string]time.Time{}}
		for i, role := range roles {
			if texts[i] != nil {
				rec.text[role.name] = *texts[i]
				size += len(*texts[i])
			}
			if times[i] != nil {
				rec.at[role.name] = times[i].UTC()
			}
		}
		if size > maxBytes {
			return nil, tooManyError{}
		}
		list = append(list, rec)
	}
	return list, rows.Err()
}

// fault keeps the first fault of a row.
func (r *record) fault(role string, err error) {
	if err != nil && r.err == nil {
		r.err = &rowError{role, err}
	}
}

// need gives a text that every row has.
func (r *record) need(role string) string {
	if r.text[role] == "" {
		r.fault(role, errEmpty)
	}
	return r.text[role]
}

// effect makes an effect of a row. The error says what is not as configured; it never quotes
// what the row holds.
func (k *kind) effect(r *record, at recon.Account) (recon.Effect, error) {
	e := recon.Effect{
		ID: r.need("id"), Kind: k.Kind, Account: at.Account, Mode: at.Mode, CreatedAt: r.at["created_at"], UpdatedAt: r.at["updated_at"],
		Parent: r.text["parent"], Target: r.text["target"], Reference: r.text["reference"], Key: r.text["key"],
		NaturalReference: r.text["natural_reference"], FailureReason: r.text["failure_reason"], CreatedBy: r.text["created_by"],
	}
	switch {
	case e.CreatedAt.IsZero():
		r.fault("created_at", errEmpty)
	case e.CreatedAt.Before(firstTime) || !e.CreatedAt.Before(endTime):
		r.fault("created_at", errors.New("a time is not within the years 2000 to 2099"))
	}
	if k.Columns.Account != "" && r.need("account") != at.Account {
		r.fault("account", errors.New("a row is of another account than the one asked for"))
	}
	if k.Columns.Mode != "" && k.Modes[r.need("mode")] != at.Mode {
		r.fault("mode", errors.New("holds a word that modes does not name; add what it means"))
	}
	money, err := k.words.Money(r.text["amount"], r.text["currency"])
	r.fault("amount", err)
	e.Money, e.Status = money, k.status(r)
	return e, r.err
}

// status is what became of the effect. A row that was deleted was done and taken back, or
// came to nothing before it was done.
func (k *kind) status(r *record) recon.EffectStatus {
	status := recon.Completed
	if k.Columns.Status != "" {
		var err error
		status, err = k.words.StatusOf(r.need("status"))
		r.fault("status", err)
	}
	if !r.deleted() {
		return status
	}
	switch status {
	case recon.Completed:
		return recon.Reversed
	case recon.InFlight:
		return recon.EffectFailed
	}
	return status
}

// deleted reports whether the row bears a flag, or a time, of deletion.
func (r *record) deleted() bool {
	_, at := r.at["deleted"]
	return at || r.text["deleted"] != "" && r.text["deleted"] != "false"
}

// raw is the row as it was read, less what was not asked for.
func (r *record) raw() ([]byte, error) {
	all := map[string]string{}
	for role, text := range r.text {
		all[role] = text
	}
	for role, at := range r.at {
		all[role] = at.Format(time.RFC3339Nano)
	}
	return json.Marshal(all)
}

// sightings makes the effects of rows. Two rows of one reply that bear one id are no list of
// effects.
func (a *asking) sightings(rows []*record, l sources.List) ([]*sources.Sighting, error) {
	k, at := a.kinds[l.Kind], recon.Account{Account: l.Account, Mode: l.Mode}
	var ids []string
	var list []*sources.Sighting
	for _, row := range rows {
		e, err := k.effect(row, at)
		if err != nil {
			return nil, err
		}
		raw, err := row.raw()
		if err != nil {
			return nil, &rowError{"id", errors.New("a row cannot be written down")}
		}
		e.Source, e.System = a.name, a.sheet.System
		ids = append(ids, e.ID)
		list = append(list, &sources.Sighting{Effect: e, Raw: raw})
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) < len(list) {
		return nil, &rowError{"id", errors.New("several rows bear one id; name the column that tells them apart")}
	}
	return list, nil
}
