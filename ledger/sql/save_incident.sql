-- Stores the plan of one incident with its notices. A plan that another process made
-- meanwhile stands, and this one is dropped.
-- $1 tenant  $2 now  $3 incident  $4 plan_at as it was read  $5 level  $6 next
-- $7 it is full  $8 it is over  $9 since when the source is up  $10 shown  $11 notices
-- $12 act that may be asked for again  $13 findings that it told  $14 those still open
WITH planned AS (
    UPDATE reconciler.incidents i
    SET level = $5, plan_at = CASE WHEN NOT $8 THEN $6::timestamptz END,
        full_at = CASE WHEN $7 OR $8 THEN coalesce(i.full_at, $2) ELSE i.full_at END,
        ended_at = CASE WHEN $8 THEN $2 END, total = CASE WHEN $8 THEN $13::integer END,
        left_open = CASE WHEN $8 THEN $14::integer END, up_since = $9, shown = $10
    WHERE i.tenant = $1 AND i.incident_id = $3 AND i.ended_at IS NULL AND i.plan_at IS NOT DISTINCT FROM $4
    RETURNING i.incident_id
),
-- What it held back and is still open is told for itself from now on.
free AS (
    SELECT f.finding_id
    FROM reconciler.findings f
    JOIN planned p ON p.incident_id = f.incident_id
    WHERE f.tenant = $1 AND $8 AND f.incident_id = $3 AND f.state NOT IN ('settled', 'ended')
    ORDER BY f.fingerprint
    FOR NO KEY UPDATE OF f
),
freed AS (
    UPDATE reconciler.findings f SET incident_id = NULL, plan_at = $2
    FROM free x WHERE f.tenant = $1 AND f.finding_id = x.finding_id
)
INSERT INTO reconciler.notices AS n (tenant, notice_id, incident_id, subject, act, step, destination, mention, reason, planned_at, due_at)
SELECT $1, w.notice_id, p.incident_id, p.incident_id, w.act, w.step, w.destination, w.mention, w.reason, $2, w.due_at
FROM json_to_recordset($11::json) AS w (notice_id text, act text, step text, destination text,
    mention text[], reason text, due_at timestamptz)
JOIN planned p ON true
ON CONFLICT (tenant, subject, opening, step, destination) DO UPDATE
    SET edition = n.edition + 1, due_at = CASE WHEN n.state = 'delivered' THEN excluded.due_at ELSE n.due_at END,
        planned_at = CASE WHEN n.state = 'delivered' THEN excluded.planned_at ELSE n.planned_at END,
            state = CASE WHEN n.state = 'delivered' THEN 'due' ELSE n.state END, reason = excluded.reason
    WHERE n.act = $12
