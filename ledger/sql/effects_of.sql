-- The stored effects that belong or may belong to operations: their own, those that name
-- one by reference, key or id, whoever owns them (what names it is not absent), and those
-- without owner that have its parent, amount and currency. An index probe each.
-- $1 tenant  $2.. operation ids, keys, effect ids, groups, parents, amounts, currencies  $9 most look-alikes
WITH ops AS MATERIALIZED (
    SELECT o.operation_id, nullif(o.key, '') AS key, nullif(o.effect_id, '') AS effect_id,
        nullif(o.grouped, '') AS grouped, nullif(o.parent, '') AS parent, o.amount, o.currency
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[])
        AS o (operation_id, key, effect_id, grouped, parent, amount, currency)
),
alike AS (
    SELECT o.operation_id, e.system, e.account, e.mode, e.id,
        row_number() OVER (PARTITION BY o.operation_id ORDER BY e.created_at, e.id) AS place
    FROM ops o
    JOIN reconciler.effects e ON e.tenant = $1 AND e.owner IS NULL AND e.parent = o.parent
        AND e.amount = o.amount AND e.currency = o.currency
    UNION ALL
    SELECT o.operation_id, e.system, e.account, e.mode, e.id,
        row_number() OVER (PARTITION BY o.operation_id ORDER BY e.created_at, e.id)
    FROM ops o
    JOIN reconciler.effects e ON e.tenant = $1 AND e.owner IS NULL AND e.other_parents <> '{}'
        AND e.other_parents @> ARRAY[o.parent] AND e.amount = o.amount AND e.currency = o.currency
    WHERE o.parent IS NOT NULL
),
named AS (
    SELECT o.operation_id, e.system, e.account, e.mode, e.id
    FROM ops o JOIN reconciler.effects e ON e.tenant = $1 AND e.owner = o.operation_id
    UNION ALL
    SELECT o.operation_id, e.system, e.account, e.mode, e.id
    FROM ops o JOIN reconciler.effects e ON e.tenant = $1 AND e.reference = o.operation_id
    UNION ALL
    SELECT o.operation_id, e.system, e.account, e.mode, e.id
    FROM ops o JOIN reconciler.effects e ON e.tenant = $1 AND e.reference = o.grouped
        AND (e.owner IS NULL OR e.owner = o.grouped)
    UNION ALL
    SELECT o.operation_id, e.system, e.account, e.mode, e.id
    FROM ops o JOIN reconciler.effects e ON e.tenant = $1 AND e.key = o.key
    UNION ALL
    SELECT o.operation_id, e.system, e.account, e.mode, e.id
    FROM ops o JOIN reconciler.effects e ON e.tenant = $1 AND e.id = o.effect_id
    UNION ALL
    SELECT a.operation_id, a.system, a.account, a.mode, a.id FROM alike a WHERE a.place <= $9
)
SELECT n.operation_id, e.system, e.account, e.mode, e.id, e.source, e.kind, e.status, e.amount, e.currency, e.parent,
    e.other_parents, e.target, e.reference, e.natural_reference, e.key, e.created_at, e.updated_at, e.fee, e.net,
    e.settlement_amount, e.settlement_currency, e.created_by, e.failure_reason, e.caused_by, e.parent_total,
    e.metadata, e.owner, e.needs_read
FROM (SELECT DISTINCT n.* FROM named n) n
JOIN reconciler.effects e
    ON e.tenant = $1 AND e.system = n.system AND e.account = n.account AND e.mode = n.mode AND e.id = n.id
ORDER BY n.operation_id, e.created_at, e.id
