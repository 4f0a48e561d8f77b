-- Opens, keeps, opens again and ends findings.
-- $1 tenant  $2 now  $3 findings  $4 ended fingerprints  $5 why they ended
WITH input AS (
    SELECT r.*
    FROM json_to_recordset($3::json) AS r (finding_id text, fingerprint text, kind text, certainty text, source text,
        operation_ids text[], effect_ids text[], effects jsonb, observed jsonb, reason text, amount bigint,
        currency text)
),
-- As they were before this statement: what was open already is not opened.
before AS (
    SELECT f.fingerprint, f.state
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.fingerprint IN (SELECT i.fingerprint FROM input i)
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
            -- Told from the beginning.
            level = CASE WHEN f.state IN ('settled', 'ended') THEN 0 ELSE f.level END,
            incident_id = CASE WHEN f.state NOT IN ('settled', 'ended') THEN f.incident_id END,
            ended_at = NULL, ending = NULL, settled_at = NULL, settled_by = NULL, settled_as = NULL,
            proposal = NULL, acknowledged_until = NULL, snoozed_until = NULL,
            certainty = excluded.certainty, effects = excluded.effects, observed = excluded.observed,
            reason = excluded.reason, amount = excluded.amount, currency = excluded.currency,
            version = f.version + 1
        -- Settled by a person stays settled while what was observed is the same. Not so after
        -- a release: what is sent then may come to the same end once more.
        WHERE f.state = 'ended' OR f.observed IS DISTINCT FROM excluded.observed
            OR f.state = 'settled' AND f.settled_as = 'release'
    RETURNING f.fingerprint, f.finding_id, f.kind
),
ended AS (
    UPDATE reconciler.findings f
    SET state = 'ended', ended_at = $2, ending = e.reason, version = f.version + 1,
        proposal = NULL, acknowledged_until = NULL, snoozed_until = NULL
    FROM unnest($4::text[], $5::text[]) AS e (fingerprint, reason)
    WHERE f.tenant = $1 AND f.fingerprint = e.fingerprint AND f.state NOT IN ('settled', 'ended')
    RETURNING f.fingerprint, f.finding_id, f.kind
),
fate AS (
    SELECT CASE WHEN b.state IS NULL OR b.state IN ('settled', 'ended') THEN 'opened' ELSE 'changed' END AS fate,
        s.fingerprint, s.finding_id, s.kind
    FROM saved s LEFT JOIN before b ON b.fingerprint = s.fingerprint
    UNION ALL
    SELECT 'ended', e.fingerprint, e.finding_id, e.kind FROM ended e
)
SELECT t.fate, t.fingerprint, t.finding_id, t.kind FROM fate t
