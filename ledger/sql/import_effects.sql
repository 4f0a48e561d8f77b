-- Stores the rows of a file whose effects are not known yet. The others stay as they are.
-- In the order in which every writer locks effects, so that two of them never wait for
-- each other.
-- $1 tenant  $2 now  $3 system  $4 source  $5 look  $6 first row  $7 last row
INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency,
    parent, other_parents, target, reference, natural_reference, key, created_at, updated_at, fee, net,
    settlement_amount, settlement_currency, created_by, failure_reason, caused_by, parent_total, metadata,
    needs_read, first_seen_at, seen_at, look_id)
SELECT $1, $3, r.account, r.mode, r.id, $4, r.kind, r.status, r.amount, r.currency,
    r.parent, coalesce(r.other_parents, '{}'), r.target, r.reference, r.natural_reference, r.key, r.created_at,
    r.updated_at, r.fee, r.net, r.settlement_amount, r.settlement_currency, r.created_by, r.failure_reason,
    r.caused_by, r.parent_total, r.metadata::jsonb, false, $2, $2, $5
FROM pg_temp.effect_rows r
WHERE NOT r.again AND r.n BETWEEN $6 AND $7
ORDER BY r.account COLLATE "C", r.mode COLLATE "C", r.id COLLATE "C"
ON CONFLICT (tenant, system, account, mode, id) DO NOTHING
