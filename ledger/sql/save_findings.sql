-- Opens, keeps, opens again and ends findings, and stores their notices.
-- $1 tenant  $2 now  $3 findings  $4 ended fingerprints  $5 why they ended  $6 notices
-- $7 the first step of notices
WITH input AS (
    SELECT r.*
    FROM json_to_recordset($3::json) AS r (finding_id text, fingerprint text, kind text, certainty text, source text,
        operation_ids text[], effect_ids text[], effects jsonb, observed jsonb, reason text, amount bigint,
        currency text)
),
-- As they were before this statement: what was open already is not opened.
before AS (
    SELECT f.fingerprint, f.finding_id, f.kind, f.openings, f.state
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.fingerprint IN (
        SELECT i.fingerprint FROM input i
        UNION SELECT n.fingerprint FROM json_to_recordset($6::json) AS n (fingerprint text))
),
saved AS (
    INSERT INTO reconciler.findings AS f (tenant, finding_id, fingerprint, kind, certainty, state, source,
        operation_ids, effect_ids, effects, observed, reason, amount, currency, opened_at)
    SELECT $1, i.finding_id, i.fingerprint, i.kind, i.certainty, 'open', i.source,
        i.operation_ids, i.effect_ids, i.effects, i.observed, i.reason, i.amount, i.currency, $2
    FROM input i
    ORDER BY i.fingerprint
    ON CONFLICT (tenant, fingerprint) DO UPDATE
        -- What somebody acknowledged or put off is news again once it is another thing.
        SET state = 'open',
            opened_at = CASE WHEN f.state IN ('settled', 'ended') THEN excluded.opened_at ELSE f.opened_at END,
            openings = CASE WHEN f.state IN ('settled', 'ended') THEN f.openings + 1 ELSE f.openings END,
            ended_at = NULL, ending = NULL, settled_at = NULL, settled_by = NULL, settled_as = NULL,
            proposal = NULL, acknowledged_until = NULL, snoozed_until = NULL,
            certainty = excluded.certainty, effects = excluded.effects, observed = excluded.observed,
            reason = excluded.reason, amount = excluded.amount, currency = excluded.currency,
            version = f.version + 1
        -- Settled by a person stays settled while what was observed is the same. Not so after
        -- a release: what is sent then may come to the same end once more.
        WHERE f.state = 'ended' OR f.observed IS DISTINCT FROM excluded.observed
            OR f.state = 'settled' AND f.settled_as = 'release'
    RETURNING f.fingerprint, f.finding_id, f.kind, f.openings
),
ended AS (
    UPDATE reconciler.findings f
    SET state = 'ended', ended_at = $2, ending = e.reason, version = f.version + 1,
        proposal = NULL, acknowledged_until = NULL, snoozed_until = NULL
    FROM unnest($4::text[], $5::text[]) AS e (fingerprint, reason)
    WHERE f.tenant = $1 AND f.fingerprint = e.fingerprint AND f.state NOT IN ('settled', 'ended')
    RETURNING f.fingerprint, f.finding_id, f.kind, f.openings
),
fate AS (
    SELECT CASE WHEN b.state IS NULL OR b.state IN ('settled', 'ended') THEN 'opened' ELSE 'changed' END AS fate,
        s.fingerprint, s.finding_id, s.kind, s.openings
    FROM saved s LEFT JOIN before b ON b.fingerprint = s.fingerprint
    UNION ALL
    SELECT 'ended', e.fingerprint, e.finding_id, e.kind, e.openings FROM ended e
    UNION ALL
    SELECT 'same', b.fingerprint, b.finding_id, b.kind, b.openings
    FROM before b
    WHERE b.state NOT IN ('settled', 'ended')
        AND NOT EXISTS (SELECT FROM saved s WHERE s.fingerprint = b.fingerprint)
        AND NOT EXISTS (SELECT FROM ended e WHERE e.fingerprint = b.fingerprint)
),
wanted AS (
    SELECT n.* FROM json_to_recordset($6::json) AS n (notice_id text, fingerprint text, operation_id text, step text,
        destination text, reason text, due_at timestamptz)
),
planned AS (
    -- Nothing is told of a finding that a person settled and that is unchanged, and
    -- nothing is edited where no message was ever planned.
    INSERT INTO reconciler.notices (tenant, notice_id, finding_id, opening, operation_id, step, destination, reason,
        planned_at, due_at)
    SELECT $1, n.notice_id, t.finding_id, t.openings, n.operation_id, n.step, n.destination, n.reason, $2, n.due_at
    FROM wanted n
    JOIN fate t ON t.fingerprint = n.fingerprint
    WHERE n.step = $7
        OR EXISTS (SELECT FROM reconciler.notices x
            WHERE x.tenant = $1 AND x.step = $7 AND x.destination = n.destination
                AND (x.finding_id = t.finding_id OR x.operation_id = n.operation_id))
        OR EXISTS (SELECT FROM wanted x
            WHERE x.step = $7 AND x.destination = n.destination AND x.operation_id = n.operation_id)
    ON CONFLICT (tenant, finding_id, opening, step, destination) DO NOTHING
)
SELECT t.fate, t.fingerprint, t.finding_id, t.kind FROM fate t WHERE t.fate <> 'same'
