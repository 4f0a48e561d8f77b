-- The stored effects that belong or may belong to operations: their own, those that name
-- one by reference, key or id, whoever owns them (what names it is not absent), and those
-- without owner that have its parent, amount and currency.
-- LATERAL makes each naming an index probe per operation, also where the tables have no
-- statistics yet: a join would then read every effect that there is, for every batch.
-- $1 tenant  $2.. operation ids, keys, effect ids, groups, parents, amounts, currencies  $9 most look-alikes
WITH ops AS MATERIALIZED (
    SELECT o.operation_id, nullif(o.key, '') AS key, nullif(o.effect_id, '') AS effect_id,
        nullif(o.grouped, '') AS grouped, nullif(o.parent, '') AS parent, o.amount, o.currency
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
        AS o (operation_id, key, effect_id, grouped, parent, amount, currency)
),
beside AS MATERIALIZED (
    SELECT e.* FROM reconciler.effects e WHERE e.tenant = $1 AND e.owner IS NULL AND e.parent = ANY ($6::text[])
),
below AS MATERIALIZED (
    SELECT e.* FROM reconciler.effects e
    WHERE e.tenant = $1 AND e.owner IS NULL AND e.other_parents <> '{}' AND e.other_parents && $6::text[]
),
alike AS (
    SELECT a.* FROM (
        SELECT o.operation_id AS operation, e.*,
            row_number() OVER (PARTITION BY o.operation_id ORDER BY e.created_at, e.id) AS place
        FROM ops o JOIN beside e ON e.parent = o.parent AND e.amount = o.amount AND e.currency = o.currency
    ) a WHERE a.place <= $9
    UNION ALL
    SELECT a.* FROM (
        SELECT o.operation_id AS operation, e.*,
            row_number() OVER (PARTITION BY o.operation_id ORDER BY e.created_at, e.id) AS place
        FROM ops o JOIN below e ON o.parent = ANY (e.other_parents) AND e.amount = o.amount AND e.currency = o.currency
    ) a WHERE a.place <= $9
),
named AS (
    SELECT o.operation_id AS operation, e.*
    FROM ops o
    CROSS JOIN LATERAL (
        SELECT e.* FROM reconciler.effects e WHERE e.tenant = $1 AND e.owner = o.operation_id
        UNION ALL
        SELECT e.* FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.reference = o.operation_id AND e.owner IS DISTINCT FROM o.operation_id
        UNION ALL
        SELECT e.* FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.reference = o.grouped AND (e.owner IS NULL OR e.owner = o.grouped)
        UNION ALL
        SELECT e.* FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.key = o.key AND e.owner IS DISTINCT FROM o.operation_id
        UNION ALL
        SELECT e.* FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.id = o.effect_id AND e.owner IS DISTINCT FROM o.operation_id
    ) e
)
SELECT n.operation, n.system, n.account, n.mode, n.id, n.source, n.kind, n.status, n.amount, n.currency, n.parent,
    n.other_parents, n.target, n.reference, n.natural_reference, n.key, n.created_at, n.updated_at, n.fee, n.net,
    n.settlement_amount, n.settlement_currency, n.created_by, n.failure_reason, n.caused_by, n.parent_total,
    n.metadata, n.owner, n.needs_read
FROM (
    SELECT n.*, 0 AS place FROM named n
    UNION ALL
    SELECT a.* FROM alike a
) n
ORDER BY n.operation, n.created_at, n.id
