-- Stores plans with their notices. A plan whose finding changed, or was planned by
-- another process meanwhile, is dropped: it is planned anew.
-- $1 tenant  $2 now  $3 plans  $4 notices  $5 act that may be asked for again
WITH plan AS (
    SELECT p.* FROM json_to_recordset($3::json) AS p (finding_id text, level integer, next timestamptz, resume boolean,
        wake boolean, version bigint, planned bigint, plan_at timestamptz)
),
locked AS (
    SELECT f.finding_id, f.openings, f.operation_ids
    FROM reconciler.findings f
    JOIN plan p ON p.finding_id = f.finding_id
    WHERE f.tenant = $1 AND f.version = p.version AND f.planned_version = p.planned
        AND f.plan_at IS NOT DISTINCT FROM p.plan_at
    -- In the order in which every writer of findings locks them.
    ORDER BY f.fingerprint
    FOR NO KEY UPDATE OF f
),
planned AS (
    UPDATE reconciler.findings f
    SET level = p.level, plan_at = p.next,
        version = p.version + p.resume::int, planned_version = p.version + p.resume::int,
        state = CASE WHEN p.resume THEN 'open' ELSE f.state END,
        acknowledged_until = CASE WHEN NOT p.resume THEN f.acknowledged_until END,
        snoozed_until = CASE WHEN NOT p.resume THEN f.snoozed_until END
    FROM plan p, locked l
    WHERE f.tenant = $1 AND f.finding_id = p.finding_id AND l.finding_id = p.finding_id
    RETURNING f.finding_id, f.openings, f.operation_ids, p.wake
),
to_wake AS (
    SELECT f.finding_id
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.state NOT IN ('settled', 'ended') AND f.incident_id IS NULL
        AND f.operation_ids && ARRAY (SELECT unnest(w.operation_ids) FROM planned w WHERE w.wake)
        AND NOT EXISTS (SELECT FROM plan p WHERE p.finding_id = f.finding_id)
    ORDER BY f.fingerprint
    FOR NO KEY UPDATE OF f
),
woken AS (
    UPDATE reconciler.findings f SET plan_at = $2
    FROM to_wake w WHERE f.tenant = $1 AND f.finding_id = w.finding_id
),
stored AS (
    INSERT INTO reconciler.notices AS n (tenant, notice_id, finding_id, subject, opening, operation_id, act, step,
        destination, mention, reason, planned_at, due_at)
    SELECT $1, w.notice_id, w.finding_id, w.finding_id, p.openings, p.operation_ids[1], w.act, w.step,
        w.destination, w.mention, w.reason, $2, w.due_at
    FROM json_to_recordset($4::json) AS w (notice_id text, finding_id text, act text, step text, destination text,
        mention text[], reason text, due_at timestamptz)
    JOIN planned p ON p.finding_id = w.finding_id
    -- A change of a message that is not made yet is made with what is so then.
    ON CONFLICT (tenant, subject, opening, step, destination) DO UPDATE
        SET edition = n.edition + 1, due_at = CASE WHEN n.state = 'delivered' THEN excluded.due_at ELSE n.due_at END,
            planned_at = CASE WHEN n.state = 'delivered' THEN excluded.planned_at ELSE n.planned_at END,
            state = CASE WHEN n.state = 'delivered' THEN 'due' ELSE n.state END, reason = excluded.reason
        WHERE n.act = $5
    RETURNING 1
)
SELECT (SELECT count(*) FROM planned), (SELECT count(*) FROM stored)
