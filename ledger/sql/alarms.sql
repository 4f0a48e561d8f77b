-- Findings as the planning of their notices sees them.
-- $1 tenant, then what the choice of the due ones needs
WITH due AS (
    {due}
),
-- Read once for all of them, however few rows the planner believes there are.
beside AS MATERIALIZED (
    SELECT b.finding_id, b.kind, b.source, b.operation_ids, b.effects, b.opened_at
    FROM reconciler.findings b
    WHERE b.tenant = $1 AND b.state NOT IN ('settled', 'ended') AND b.incident_id IS NULL
        AND b.operation_ids && ARRAY (
            SELECT unnest(f.operation_ids)
            FROM due d JOIN reconciler.findings f ON f.tenant = $1 AND f.finding_id = d.finding_id
            WHERE f.state NOT IN ('settled', 'ended') AND f.incident_id IS NULL)
)
SELECT {finding}, f.openings, coalesce(f.snoozed_until, f.acknowledged_until), f.incident_id, o.action, o.since,
    o.key_expires_at, f.planned_version, f.plan_at,
    (SELECT coalesce(json_agg(json_build_object('Step', n.step, 'Destination', n.destination)
            ORDER BY n.planned_at, n.notice_id), '[]')
        FROM reconciler.notices n
        WHERE n.tenant = $1 AND n.subject = f.finding_id AND n.opening = f.openings AND n.act = 'tell'),
    (SELECT coalesce(json_agg(json_build_object('Kind', b.kind, 'Source', b.source, 'Operations', b.operation_ids,
            'Effects', b.effects, 'OpenedAt', b.opened_at) ORDER BY b.finding_id), '[]')
        FROM beside b
        WHERE b.operation_ids && f.operation_ids AND b.finding_id <> f.finding_id
            AND f.state NOT IN ('settled', 'ended') AND f.incident_id IS NULL)
FROM due d
JOIN reconciler.findings f ON f.tenant = $1 AND f.finding_id = d.finding_id
LEFT JOIN LATERAL (
    SELECT min(p.action) AS action, min(p.unknown_since) AS since,
        -- A repeat is safe until the margin before the key expires, and no longer.
        min(p.key_expires_at - coalesce((y.body ->> 'key_margin')::interval, interval '30 minutes'))
            FILTER (WHERE p.state NOT IN ('succeeded', 'failed')) AS key_expires_at
    FROM reconciler.operations p
    LEFT JOIN reconciler.policies y ON y.tenant = $1 AND y.action = p.action AND y.version = p.policy_version
    WHERE p.tenant = $1 AND p.operation_id = ANY (f.operation_ids)
) o ON true
ORDER BY f.finding_id
