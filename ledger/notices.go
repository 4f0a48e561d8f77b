package ledger

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

//go:embed sql/due_notices.sql
var dueNoticesSQL string

// DueNotices gives notices whose time has come, that are not delivered and that
// nobody holds: those that call people before all others, then by due time. One that
// changes a message waits until that message is delivered.
func (l *Ledger) DueNotices(ctx context.Context, now time.Time, limit int) ([]recon.Notice, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	scan := func(row pgx.CollectableRow) (recon.Notice, error) {
		var n recon.Notice
		var subject string
		err := row.Scan(&n.ID, text(&n.Finding), text(&n.Incident), &subject, number(&n.Opening), text(&n.Act), &n.Step, &n.Destination, text(&n.Refused),
			&n.Mention, &n.Reason, instant(&n.DueAt), number(&n.Edition), number(&n.Tries), &n.Doubt, instant(&n.FirstTry), text(&n.Root.Channel), text(&n.Root.TS))
		if day, ok := strings.CutPrefix(subject, digestSubject); ok {
			n.Digest = day
		}
		if day, ok := strings.CutPrefix(subject, reportSubject); ok {
			n.Report = day
		}
		return n, err
	}
	due, err := collect(ctx, l.pool, scan, dueNoticesSQL, l.tenant, stored(now), string(recon.ActEdit), listLimit(limit))
	return due, l.fault("read due notices", err)
}

// A claim counts as a try whose outcome is not known until it is settled: that is how
// one looks whose process ended in between.
const claimNoticeSQL = `
UPDATE reconciler.notices n
SET claimed_until = $4, attempts = n.attempts + 1, first_try_at = coalesce(n.first_try_at, $3), outcome_unknown = true
WHERE n.tenant = $1 AND n.notice_id = $2 AND n.state <> 'delivered' AND n.due_at <= $3
	AND (n.claimed_until IS NULL OR n.claimed_until <= $3)
	AND (n.finding_id IS NULL
		OR $5 = (SELECT f.version FROM reconciler.findings f WHERE f.tenant = $1 AND f.finding_id = n.finding_id))`

// ClaimNotice takes the right to send one notice until a time; false when another has it,
// or it is done, or its next try is later, or its finding is at another version than this
// one, which the message shows.
func (l *Ledger) ClaimNotice(ctx context.Context, id string, version int64, now, until time.Time) (bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(ctx, claimNoticeSQL, l.tenant, id, stored(now), stored(until), version)
	return err == nil && tag.RowsAffected() == 1, l.fault("claim a notice", err)
}

// A change that was asked for again while it was made is made again, not at once.
const deliveredSQL = `
UPDATE reconciler.notices n
SET state = CASE WHEN n.edition = $7 THEN 'delivered' ELSE 'due' END, delivered_at = $3,
	due_at = CASE WHEN n.edition = $7 THEN n.due_at ELSE greatest(n.due_at, $3) END,
	channel = coalesce(nullif($4::text, ''), n.channel), ts = coalesce(nullif($5::text, ''), n.ts), root = n.root OR $6,
	claimed_until = NULL, outcome_unknown = false, last_error = NULL
WHERE n.tenant = $1 AND n.notice_id = $2`

// Held for ever is how a notice is kept that nobody tries again: it stays counted as
// undelivered and is never due. What its destination will not take goes to the one that
// stands in for it, once, and by itself.
const notDeliveredSQL = `
WITH kept AS (
	UPDATE reconciler.notices n
	SET state = CASE WHEN $4 OR $3::timestamptz IS NULL THEN 'undelivered' ELSE 'due' END,
		due_at = coalesce($3, n.due_at), claimed_until = CASE WHEN $3::timestamptz IS NULL THEN timestamptz 'infinity' END,
		outcome_unknown = $5, last_error = nullif($6::text, '')
	WHERE n.tenant = $1 AND n.notice_id = $2 AND n.state <> 'delivered'
	RETURNING n.*
)
INSERT INTO reconciler.notices (tenant, notice_id, finding_id, incident_id, subject, opening, operation_id, act, step, destination,
	refused, mention, reason, planned_at, due_at)
SELECT $1, $8, k.finding_id, k.incident_id, k.subject, k.opening, k.operation_id, k.act, k.step, $7,
	k.destination, k.mention, k.reason, k.planned_at, $9
FROM kept k
WHERE $7 <> ''
ON CONFLICT (tenant, subject, opening, step, destination) DO NOTHING`

// SettleNotice records how a try of an edition of a notice went and gives the claim
// back. What was delivered once stays delivered, whoever reports later.
func (l *Ledger) SettleNotice(ctx context.Context, id string, edition int, d recon.Delivery, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var err error
	if d.Done || !d.Receipt.IsZero() {
		_, err = l.pool.Exec(ctx, deliveredSQL, l.tenant, id, stored(now), d.Receipt.Channel, d.Receipt.TS, d.Root, edition)
		return l.fault("record a notice", err)
	}
	instead, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = l.pool.Exec(ctx, notDeliveredSQL, l.tenant, id, orNull(d.Next), d.Undelivered, d.Doubt, d.Reason, d.Instead, instead.String(), stored(now))
	return l.fault("record a notice", err)
}

// Told tells what messages about findings show, by the finding's id, as of one moment. Those
// that are not there are left out.
func (l *Ledger) Told(ctx context.Context, findings []string) (map[string]recon.Told, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var list []FindingStory
	var alarms []recon.Alarm
	err := l.atOnce(ctx, func(tx pgx.Tx) (err error) {
		var beside pgx.Batch
		beside.Queue(alarmsByIDSQL, l.tenant, findings).Query(fills(&alarms, scanAlarm))
		list, err = l.findingStories(ctx, tx, findings, 1, &beside)
		return err
	})
	if err != nil {
		return nil, l.fault("read what messages show", err)
	}
	told := make(map[string]recon.Told, len(list))
	for _, s := range list {
		if told[s.ID], err = l.told(ctx, s); err != nil {
			return nil, err
		}
	}
	for _, a := range alarms {
		t := told[a.Finding.ID]
		t.Alarm = a
		told[a.Finding.ID] = t
	}
	return told, nil
}

// told is what a message shows of a finding's story.
func (l *Ledger) told(ctx context.Context, s FindingStory) (t recon.Told, err error) {
	t = recon.Told{Finding: s.Finding, Assignee: s.Assignee, PausedUntil: s.SnoozedUntil, Proposal: s.Proposal}
	if t.PausedUntil.IsZero() {
		t.PausedUntil = s.AcknowledgedUntil
	}
	if len(s.Stories) > 0 {
		t.Story = s.Stories[0]
		return t, nil
	}
	t.Story = recon.Story{Findings: []recon.Finding{s.Finding}, Effects: s.Effects}
	t.Story.Policy.Exponents, err = l.exponents(ctx, s.Source)
	return t, err
}
