-- Which findings wait to be told for the first time, counted by source and kind with
-- those that were opened a moment ago.
-- $1 tenant  $2 now  $3 opened since  $4 blind answers that make a source down  $5 blind
WITH waiting AS (
    SELECT f.finding_id, f.source, f.kind
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.planned_version <> f.version
        AND f.level = 0 AND f.incident_id IS NULL AND f.state NOT IN ('settled', 'ended')
    UNION
    SELECT f.finding_id, f.source, f.kind
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.plan_at <= $2
        AND f.level = 0 AND f.incident_id IS NULL AND f.state NOT IN ('settled', 'ended')
),
crowd AS (
    SELECT w.source, w.kind, count(*) AS n FROM waiting w GROUP BY w.source, w.kind
)
SELECT c.source, c.kind,
    c.n + (SELECT count(*) FROM (
        SELECT FROM reconciler.findings f
        WHERE f.tenant = $1 AND f.kind = c.kind AND f.opened_at > $3 AND f.source = c.source
            AND f.level > 0 AND f.incident_id IS NULL AND f.state NOT IN ('settled', 'ended')
        LIMIT 1000) told),
    coalesce(s.blinds >= $4, false), i.incident_id, i.joined_at, d.incident_id
FROM crowd c
LEFT JOIN reconciler.source_state s ON s.tenant = $1 AND s.source = c.source
LEFT JOIN reconciler.incidents i ON i.tenant = $1 AND i.source = c.source AND i.kind = c.kind AND i.full_at IS NULL
LEFT JOIN reconciler.incidents d ON d.tenant = $1 AND d.source = c.source AND d.kind = $5 AND d.full_at IS NULL
ORDER BY c.source, c.kind
