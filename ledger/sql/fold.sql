-- Takes the findings of a crowd into one incident, which is made where there is none.
-- The planning of each of them is over until it changes.
-- $1 tenant  $2 now  $3 new incident's id  $4 source  $5 kind of the findings
-- $6 kind of the incident  $7 opened since  $8 when the incident is planned
WITH made AS (
    INSERT INTO reconciler.incidents (tenant, incident_id, source, kind, opened_at, joined_at, plan_at)
    VALUES ($1, $3, $4, $6, $2, $2, $8)
    -- It is joined where it is there, and planned when it would be anyway.
    ON CONFLICT (tenant, source, kind) WHERE full_at IS NULL
        DO UPDATE SET joined_at = $2, plan_at = coalesce(incidents.plan_at, $8)
    RETURNING incident_id
),
crowd AS (
    SELECT f.finding_id
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.kind = $5 AND f.source = $4 AND f.state NOT IN ('settled', 'ended')
        AND f.incident_id IS NULL
        AND (f.planned_version <> f.version AND f.level = 0 OR f.plan_at <= $2 OR f.opened_at > $7)
    ORDER BY f.fingerprint
    FOR NO KEY UPDATE OF f
),
taken AS (
    UPDATE reconciler.findings f
    SET incident_id = m.incident_id, planned_version = f.version, plan_at = NULL
    FROM made m, crowd c
    WHERE f.tenant = $1 AND f.finding_id = c.finding_id
    RETURNING f.operation_ids
)
SELECT m.incident_id, (SELECT count(*) FROM taken) FROM made m
