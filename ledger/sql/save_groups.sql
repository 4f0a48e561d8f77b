-- Links effects to groups and shares them out. The caller holds the row locks of all these
-- effects; a link of another owner is never taken over.
-- $1 tenant  $2 now  $3 links  $4 shares
WITH linked AS (
    INSERT INTO reconciler.matches AS m (tenant, system, account, mode, effect_id, "group", basis, certainty,
        role, look_id, at)
    -- Where no look of this batch showed the effect, the one did that it was stored with.
    SELECT $1, r.system, r.account, r.mode, r.effect_id, r."group", r.basis, r.certainty, r.role,
        coalesce(r.look_id, (SELECT e.look_id FROM reconciler.effects e WHERE e.tenant = $1 AND e.system = r.system
            AND e.account = r.account AND e.mode = r.mode AND e.id = r.effect_id)), $2
    FROM json_to_recordset($3::json) AS r (system text, account text, mode text, effect_id text, "group" text,
        basis text, certainty text, role text, look_id text)
    ON CONFLICT (tenant, system, account, mode, effect_id) DO UPDATE
        SET basis = excluded.basis, certainty = excluded.certainty, role = excluded.role,
            look_id = excluded.look_id, at = excluded.at
        WHERE m."group" = excluded."group"
    RETURNING m.effect_id
),
shares AS MATERIALIZED (
    SELECT s.system, s.account, s.mode, s.effect_id, s.operation_id, s.amount
    FROM json_to_recordset($4::json) AS s (system text, account text, mode text, effect_id text,
        operation_id text, amount bigint)
),
-- An effect that is shared out anew takes back what it gave. Where the sum is off there is
-- nothing to give, and what was given before stays.
returned AS (
    DELETE FROM reconciler.allocations a
    USING json_to_recordset($3::json) AS r (system text, account text, mode text, effect_id text)
    WHERE a.tenant = $1 AND a.system = r.system AND a.account = r.account AND a.mode = r.mode
        AND a.effect_id = r.effect_id
        AND EXISTS (SELECT FROM shares s WHERE s.system = a.system AND s.account = a.account
            AND s.mode = a.mode AND s.effect_id = a.effect_id)
        AND NOT EXISTS (SELECT FROM shares s WHERE s.system = a.system AND s.account = a.account
            AND s.mode = a.mode AND s.effect_id = a.effect_id AND s.operation_id = a.operation_id)
),
given AS (
    INSERT INTO reconciler.allocations AS a (tenant, system, account, mode, effect_id, operation_id, amount, at)
    SELECT $1, s.system, s.account, s.mode, s.effect_id, s.operation_id, s.amount, $2
    FROM shares s
    ON CONFLICT (tenant, system, account, mode, effect_id, operation_id) DO UPDATE
        SET amount = excluded.amount, at = excluded.at
        WHERE a.amount <> excluded.amount
)
SELECT count(*) FROM linked
