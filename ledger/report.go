package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Period is what the ledger holds of a range of time, read as of one moment.
type Period struct {
	Window     recon.Window
	At         time.Time          // when it was read
	Sources    []recon.SourceName // that policies name
	Audits     []Run              // finished ones that may have looked into the range, newest first
	Counted    Counted            // apart from the sums, which must come to the same
	Operations []OperationSum     // opened in the range
	Effects    []EffectSum        // made in the range
	Open       []OpenAge          // operations opened before the end of the range that are open now
	Closings   Closings           // in the range, of operations that were in doubt
	Changed    Heads
	Findings   []FindingRow // opened in the range, or open since before its end; oldest first
	Policies   []recon.Policy
	Exponents  map[string]int
	Down       map[recon.SourceName]time.Time // sources that cannot be asked now, and since when
}

// Counted is how many operations and effects there are in the range.
type Counted struct{ Operations, Effects int }

// OperationSum counts operations that agree in all of its texts.
type OperationSum struct {
	Source   recon.SourceName
	Action   string
	Currency string // empty: they have no amount
	State    recon.State
	Policy   int // the version that they were opened under
	Count    int
	Minor    int64 // sum of their amounts
}

// EffectSum counts effects that agree in all of its texts.
type EffectSum struct {
	Source      recon.SourceName
	Kind        string
	Currency    string
	Status      recon.EffectStatus
	Owned       bool // they belong to an operation or a group
	FeeCurrency string
	Count       int
	Minor       int64
	Fees        int // of how many the fee is known
	Fee         int64
}

// OpenAge counts open operations of one age, by the index of its bucket in [Ages].
type OpenAge struct {
	Source recon.SourceName
	Action string
	State  recon.State
	Bucket int
	Count  int
}

// Ages are where one bucket of ages ends and the next one begins.
var Ages = []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour}

// Closings tell how long operations were in doubt that a decision or a person closed.
type Closings struct {
	Count, ByPeople   int
	Median, P99, Most time.Duration
}

// Heads is one hash over the heads that chains of journals had at the end of a range, of
// those operations that got an entry in it.
type Heads struct {
	Operations int
	Digest     string // hexadecimal SHA-256 of lines "ID SEQ HASH\n" in order of id; of no line: of nothing
}

const (
	// Every policy that ever was: operations of one that is no longer in force count too.
	periodSourcesSQL = `
SELECT DISTINCT p.body ->> 'source' FROM reconciler.policies p WHERE p.tenant = $1 AND p.body ->> 'source' IS NOT NULL ORDER BY 1`

	// Sources that have anything, one probe of an index each: imports need no policy.
	periodHeldSQL = `
WITH RECURSIVE ours AS (
	(SELECT o.source FROM reconciler.operations o WHERE o.tenant = $1 ORDER BY o.source LIMIT 1)
	UNION ALL
	SELECT (SELECT o.source FROM reconciler.operations o WHERE o.tenant = $1 AND o.source > r.source ORDER BY o.source LIMIT 1)
	FROM ours r WHERE r.source IS NOT NULL
), theirs AS (
	(SELECT e.source FROM reconciler.effects e WHERE e.tenant = $1 ORDER BY e.source LIMIT 1)
	UNION ALL
	SELECT (SELECT e.source FROM reconciler.effects e WHERE e.tenant = $1 AND e.source > r.source ORDER BY e.source LIMIT 1)
	FROM theirs r WHERE r.source IS NOT NULL
)
SELECT s.source FROM (SELECT ours.source FROM ours UNION SELECT theirs.source FROM theirs) s WHERE s.source IS NOT NULL ORDER BY s.source`

	// An audit that began before the range saw nothing of it.
	periodAuditsSQL = `
SELECT r.run_id, r.name, r.tick, r.holder, r.started_at, r.finished_at, r.lease_until, r.outcome, r.counts, r.error
FROM reconciler.runs r
WHERE r.tenant = $1 AND r.name = ANY ($2::text[]) AND r.started_at >= $3 AND r.finished_at IS NOT NULL
ORDER BY r.started_at DESC, r.run_id DESC`

	periodOperationsSQL = `
SELECT o.source, o.action, o.currency, o.state, o.policy_version, count(*), coalesce(sum(o.amount), 0)::bigint
FROM reconciler.operations o
WHERE o.tenant = $1 AND o.source = ANY ($2::text[]) AND o.created_at >= $3 AND o.created_at < $4
GROUP BY o.source, o.action, o.currency, o.state, o.policy_version
ORDER BY o.source, o.action, o.currency NULLS LAST, o.state, o.policy_version`

	// A fee is taken in the currency that is settled.
	periodEffectsSQL = `
SELECT e.source, e.kind, e.currency, e.status, e.owner IS NOT NULL, coalesce(e.settlement_currency, e.currency),
	count(*), coalesce(sum(e.amount), 0)::bigint, count(e.fee), coalesce(sum(e.fee), 0)::bigint
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.source = ANY ($2::text[]) AND e.created_at >= $3 AND e.created_at < $4
GROUP BY e.source, e.kind, e.currency, e.status, e.owner IS NOT NULL, coalesce(e.settlement_currency, e.currency)
ORDER BY e.source, e.kind, e.currency NULLS LAST, e.status, 5, 6`

	periodCountedSQL = `
SELECT
	(SELECT count(*) FROM reconciler.operations o WHERE o.tenant = $1 AND o.source = ANY ($2::text[]) AND o.created_at >= $3 AND o.created_at < $4),
	(SELECT count(*) FROM reconciler.effects e WHERE e.tenant = $1 AND e.source = ANY ($2::text[]) AND e.created_at >= $3 AND e.created_at < $4)`

	periodAgesSQL = `
SELECT o.source, o.action, o.state,
	width_bucket(extract(epoch FROM $3::timestamptz - coalesce(o.unknown_since, o.created_at))::float8, $4::float8[]) AS bucket, count(*)
FROM reconciler.operations o
WHERE o.tenant = $1 AND o.state NOT IN ('succeeded', 'failed') AND o.created_at < $2
GROUP BY o.source, o.action, o.state, bucket
ORDER BY o.source, o.action, o.state, bucket`

	periodClosingsSQL = `
WITH closed AS (
	SELECT j.kind, extract(epoch FROM greatest(j.at - coalesce(o.unknown_since, o.sent_at, o.created_at), interval '0')) AS took
	FROM reconciler.journal j
	JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = j.operation_id
	CROSS JOIN LATERAL jsonb_to_record(j.body::jsonb) AS b ("from" text, "to" text)
	WHERE j.tenant = $1 AND j.at >= $2 AND j.at < $3 AND j.kind IN ('decision', 'person')
		AND b."to" IN ('succeeded', 'failed') AND b."from" IN ('unknown', 'in_progress', 'manual_review')
)
SELECT count(*), count(*) FILTER (WHERE c.kind = 'person'), coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY c.took), 0)::float8,
	coalesce(percentile_disc(0.99) WITHIN GROUP (ORDER BY c.took), 0)::float8, coalesce(max(c.took), 0)::float8
FROM closed c`

	// The order is that of bytes on every server, so that anyone can compute it again.
	periodHeadsSQL = `
SELECT DISTINCT ON (j.operation_id COLLATE "C") j.operation_id, j.seq, j.hash
FROM reconciler.journal j
WHERE j.tenant = $1 AND j.at >= $2 AND j.at < $3
ORDER BY j.operation_id COLLATE "C", j.seq DESC`

	// What was lost shortly before midnight is found later, and belongs to its day.
	periodFindingsSQL = `
SELECT ` + listFindingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1 AND (f.opened_at < $3 AND (f.state NOT IN ('settled', 'ended') OR f.opened_at >= $2) OR f.finding_id = ANY ($4::text[])
	OR f.opened_at >= $3 AND EXISTS (SELECT FROM reconciler.operations o
		WHERE o.tenant = $1 AND o.operation_id = ANY (f.operation_ids) AND o.created_at >= $2 AND o.created_at < $3))
ORDER BY f.opened_at, f.finding_id`
)

// Period reads a range for a report. Named gives, of the audits that may have looked into
// it, the ids of the findings that they told, which are read too.
func (l *Ledger) Period(ctx context.Context, w recon.Window, named func([]Run) ([]string, error)) (Period, error) {
	p := Period{Window: w}
	const op = "read the ledger for a report"
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return p, l.fault(op, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	if p.At, err = clock(ctx, tx); err != nil {
		return p, l.fault(op, err)
	}
	for _, read := range []func(context.Context, pgx.Tx, *Period) error{
		l.periodPolicies, l.periodSums, l.periodOpen, l.periodClosings, l.periodHeads,
	} {
		if err := read(ctx, tx, &p); err != nil {
			return p, l.fault(op, err)
		}
	}
	ids, err := named(p.Audits)
	if err != nil {
		return p, err
	}
	p.Findings, err = collect(ctx, tx, scanFindingRow, periodFindingsSQL, l.tenant, stored(w.From), stored(w.To), ids)
	for i := range p.Findings {
		p.Findings[i].State = p.Findings[i].StateAt(p.At)
	}
	return p, l.fault(op, err)
}

// periodPolicies reads what was promised, and which audits may have seen the range.
func (l *Ledger) periodPolicies(ctx context.Context, tx pgx.Tx, p *Period) (err error) {
	if p.Policies, err = l.activePolicies(ctx, tx); err != nil {
		return err
	}
	if p.Sources, err = collect(ctx, tx, scanSource, periodSourcesSQL, l.tenant); err != nil {
		return err
	}
	names := make([]string, 0, len(p.Sources))
	for _, s := range p.Sources {
		names = append(names, "audit/"+string(s))
	}
	if p.Audits, err = collect(ctx, tx, scanRun, periodAuditsSQL, l.tenant, names, stored(p.Window.From)); err != nil {
		return err
	}
	p.Exponents = map[string]int{}
	for _, policy := range p.Policies {
		for currency, decimals := range policy.Exponents {
			p.Exponents[currency] = decimals
		}
	}
	p.Down = map[recon.SourceName]time.Time{}
	return fillTimes(ctx, tx, p.Down, blindGaugesSQL, l.tenant)
}

func scanSource(row pgx.CollectableRow) (s recon.SourceName, err error) { return s, row.Scan(text(&s)) }

func (l *Ledger) periodSums(ctx context.Context, tx pgx.Tx, p *Period) error {
	held, err := collect(ctx, tx, scanSource, periodHeldSQL, l.tenant)
	if err != nil {
		return err
	}
	args := []any{l.tenant, texts(held), stored(p.Window.From), stored(p.Window.To)}
	operation := func(row pgx.CollectableRow) (s OperationSum, err error) {
		return s, row.Scan(text(&s.Source), text(&s.Action), text(&s.Currency), text(&s.State), number(&s.Policy), number(&s.Count), &s.Minor)
	}
	if p.Operations, err = collect(ctx, tx, operation, periodOperationsSQL, args...); err != nil {
		return err
	}
	effect := func(row pgx.CollectableRow) (s EffectSum, err error) {
		return s, row.Scan(text(&s.Source), text(&s.Kind), text(&s.Currency), text(&s.Status), &s.Owned, text(&s.FeeCurrency),
			number(&s.Count), &s.Minor, number(&s.Fees), &s.Fee)
	}
	if p.Effects, err = collect(ctx, tx, effect, periodEffectsSQL, args...); err != nil {
		return err
	}
	return tx.QueryRow(ctx, periodCountedSQL, args...).
		Scan(number(&p.Counted.Operations), number(&p.Counted.Effects))
}

func (l *Ledger) periodOpen(ctx context.Context, tx pgx.Tx, p *Period) (err error) {
	seconds := make([]float64, 0, len(Ages))
	for _, d := range Ages {
		seconds = append(seconds, d.Seconds())
	}
	age := func(row pgx.CollectableRow) (a OpenAge, err error) {
		return a, row.Scan(text(&a.Source), text(&a.Action), text(&a.State), number(&a.Bucket), number(&a.Count))
	}
	p.Open, err = collect(ctx, tx, age, periodAgesSQL, l.tenant, stored(p.Window.To), stored(p.At), seconds)
	return err
}

func (l *Ledger) periodClosings(ctx context.Context, tx pgx.Tx, p *Period) error {
	var median, p99, most float64
	c := &p.Closings
	err := tx.QueryRow(ctx, periodClosingsSQL, l.tenant, stored(p.Window.From), stored(p.Window.To)).
		Scan(number(&c.Count), number(&c.ByPeople), &median, &p99, &most)
	seconds := func(s float64) time.Duration {
		return time.Duration(s * float64(time.Second)).Truncate(time.Millisecond)
	}
	c.Median, c.P99, c.Most = seconds(median), seconds(p99), seconds(most)
	return err
}

func (l *Ledger) periodHeads(ctx context.Context, tx pgx.Tx, p *Period) error {
	rows, err := tx.Query(ctx, periodHeadsSQL, l.tenant, stored(p.Window.From), stored(p.Window.To))
	if err != nil {
		return err
	}
	all := sha256.New()
	var id string
	var seq int64
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &seq, &hash}, func() error {
		p.Changed.Operations++
		fmt.Fprintf(all, "%s %d %x\n", id, seq, hash)
		return nil
	})
	p.Changed.Digest = hex.EncodeToString(all.Sum(nil))
	return err
}

const (
	namedOperationsSQL = `SELECT ` + operationColumns + ` FROM reconciler.operations o WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])`
	// Sides are read in parts of so many names.
	sidesAtOnce = 5000
)

// Sides reads the operations and effects with these ids, those that are there. The same
// effect id in another account or mode is another effect.
func (l *Ledger) Sides(ctx context.Context, operations []recon.OperationID, effects []string) (ops []recon.Operation, found []recon.Effect, err error) {
	scan := func(row pgx.CollectableRow) (o recon.Operation, err error) {
		var marks []string
		err = row.Scan(operationFields(&o, &marks)...)
		o.Marks = typed[recon.Mark](marks)
		return o, err
	}
	for part := range slices.Chunk(operations, sidesAtOnce) {
		some, err := collect(ctx, l.pool, scan, namedOperationsSQL, l.tenant, texts(part))
		if err != nil {
			return nil, nil, l.fault("read what findings name", err)
		}
		ops = append(ops, some...)
	}
	for part := range slices.Chunk(effects, sidesAtOnce) {
		some, err := collect(ctx, l.pool, scanEffect, namedEffectsSQL, l.tenant, part)
		if err != nil {
			return nil, nil, l.fault("read what findings name", err)
		}
		found = append(found, some...)
	}
	return ops, found, nil
}

const (
	reportRun = "report"

	keepReportSQL = `
INSERT INTO reconciler.runs (tenant, run_id, name, tick, holder, token, lease_until, heartbeat_at, started_at, finished_at, outcome, counts)
VALUES ($1, $2, '` + reportRun + `', $3, $4, '', $5, $5, $5, $5, 'done', $6)
ON CONFLICT DO NOTHING`

	keptReportSQL = `
SELECT r.counts FROM reconciler.runs r WHERE r.tenant = $1 AND r.name = '` + reportRun + `' AND r.tick = $2`
)

// KeptReport gives the document of a report that was kept under a name; nil: none was.
func (l *Ledger) KeptReport(ctx context.Context, name string) (json.RawMessage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var document []byte
	err := l.pool.QueryRow(ctx, keptReportSQL, l.tenant, name).Scan(&document)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return document, l.fault("read the report that was kept", err)
}

// KeepReport keeps a document under a name, in whose place no other is ever put, and gives
// the one that is kept: of two processes at once both go on with the same.
func (l *Ledger) KeepReport(ctx context.Context, name, holder string, document json.RawMessage) (json.RawMessage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	now, err := clock(ctx, l.pool)
	if err != nil {
		return nil, l.fault("keep the report", err)
	}
	if _, err := l.pool.Exec(ctx, keepReportSQL, l.tenant, reportRun+" "+name, name, holder, now, []byte(document)); err != nil {
		return nil, l.fault("keep the report", err)
	}
	return l.KeptReport(ctx, name)
}
