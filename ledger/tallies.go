package ledger

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tally is how often one thing happened since the ledger began. Name and labels are
// those of a counter without its namespace and "_total".
type Tally struct {
	Name   string
	Labels []string // values, in the counter's order
	N      int64
}

// tallies are counts by name and labels.
type tallies map[string]Tally

// addAll adds counts and says how many things they are.
func (t tallies) addAll(counts []Tally) (n int64) {
	for _, c := range counts {
		n += c.N
		key := c.Name + "\x00" + strings.Join(c.Labels, "\x00")
		c.N += t[key].N
		t[key] = c
	}
	return n
}

// Names of tallies that are read here.
const (
	tallyRepeats    = "repeats_prevented"
	tallyKeyExpired = "retries_refused_after_key_expiry"
)

// repeatKeyExpired is why a claim was refused: its key may be unknown to the provider.
const repeatKeyExpired = "key_expired"

//go:embed sql/tally_entries.sql
var tallyEntriesSQL string

const (
	tallyMarkSQL = `SELECT m.folded_to::text, m.after FROM reconciler.tally_marks m WHERE m.tenant = $1`

	foldedSQL = `SELECT t.name, t.labels, t.n FROM reconciler.tallies t WHERE t.tenant = $1`

	tallyFindingsSQL = `
SELECT 'findings_opened', ARRAY[f.kind], sum(f.openings - f.tallied)::bigint
FROM reconciler.findings f WHERE f.tenant = $1 AND f.to_tally
GROUP BY f.kind`

	tallyRepeatsSQL = `
SELECT 'repeats_prevented', ARRAY[r.reason], count(*)
FROM reconciler.repeats r WHERE r.tenant = $1
GROUP BY r.reason`

	newRunsSQL = `
SELECT r.run_id, r.name, r.counts FROM reconciler.runs r
WHERE r.tenant = $1 AND r.finished_at IS NOT NULL AND NOT r.tallied`

	// What passes over closed operations found: as it was, something else, or no answer.
	runOutcomesSQL = `
SELECT 'reverified', ARRAY[c.outcome], sum(c.n)::bigint
FROM ended r
CROSS JOIN LATERAL (VALUES
	('blind', coalesce((r.counts ->> 'blind')::bigint, 0)),
	('confirmed', coalesce((r.counts ->> 'kept')::bigint, 0)),
	('changed', coalesce((r.counts ->> 'succeeded')::bigint, 0) + coalesce((r.counts ->> 'failed')::bigint, 0)
		+ coalesce((r.counts ->> 'released')::bigint, 0) + coalesce((r.counts ->> 'manual_review')::bigint, 0))
) AS c (outcome, n)
WHERE r.name LIKE 'reverify/%'
GROUP BY c.outcome`

	tallyRunsSQL = `WITH ended AS (` + newRunsSQL + `)` + runOutcomesSQL
)

// tallies reads every tally: what was folded and what came since. q is one snapshot, so
// that nothing is in both or in neither. It also says how much came since.
func (l *Ledger) tallies(ctx context.Context, q querier) (all []Tally, since int64, err error) {
	mark, err := l.tallyMark(ctx, q, tallyMarkSQL)
	if err != nil {
		return nil, 0, err
	}
	folded, err := collect(ctx, q, scanTally, foldedSQL, l.tenant)
	if err != nil {
		return nil, 0, err
	}
	sum := tallies{}
	sum.addAll(folded)
	for _, live := range []counting{
		{tallyEntriesSQL, []any{l.tenant, mark.to, nil, orNull(mark.after)}},
		{tallyFindingsSQL, []any{l.tenant}},
		{tallyRepeatsSQL, []any{l.tenant}},
		{tallyRunsSQL, []any{l.tenant}},
	} {
		counts, err := collect(ctx, q, scanTally, live.sql, live.args...)
		if err != nil {
			return nil, 0, err
		}
		since += sum.addAll(counts)
	}
	for _, t := range sum {
		if t.Name == tallyRepeats && t.Labels[0] == repeatKeyExpired {
			all = append(all, Tally{Name: tallyKeyExpired, Labels: []string{}, N: t.N})
		}
		all = append(all, t)
	}
	return all, since, nil
}

// counting is a statement that gives tallies.
type counting struct {
	sql  string
	args []any
}

func scanTally(row pgx.CollectableRow) (t Tally, err error) {
	return t, row.Scan(&t.Name, &t.Labels, &t.N)
}

// tallyMark is how far the journal is in the tallies.
type tallyMark struct {
	to    string    // the first transaction that is not
	after time.Time // nor is anything written later; zero: whenever
}

func (l *Ledger) tallyMark(ctx context.Context, q querier, sql string) (tallyMark, error) {
	m := tallyMark{to: "0"}
	err := q.QueryRow(ctx, sql, l.tenant).Scan(&m.to, instant(&m.after))
	if errors.Is(err, pgx.ErrNoRows) {
		return m, nil
	}
	return m, err
}
