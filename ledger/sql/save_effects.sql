-- Writes what was seen of effects: new ones, changed ones, the changes themselves,
-- links, and what the provider sent. The caller holds row locks on all that exist.
-- $1 tenant  $2 now  $3 new effects  $4 changed effects  $5 changes  $6 links  $7..$10 blobs
WITH fresh AS (
    INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency,
        parent, other_parents, target, reference, natural_reference, key, created_at, updated_at, fee, net,
        settlement_amount, settlement_currency, created_by, failure_reason, caused_by, parent_total, metadata,
        owner, needs_read, first_seen_at, seen_at, look_id, blob_id)
    SELECT $1, r.system, r.account, r.mode, r.id, r.source, r.kind, r.status, r.amount, r.currency,
        r.parent, coalesce(r.other_parents, '{}'), r.target, r.reference, r.natural_reference, r.key, r.created_at,
        r.updated_at, r.fee, r.net, r.settlement_amount, r.settlement_currency, r.created_by, r.failure_reason,
        r.caused_by, r.parent_total, r.metadata, r.owner, r.needs_read, r.seen_at, r.seen_at, r.look_id, r.blob_id
    FROM json_to_recordset($3::json) AS r (system text, account text, mode text, id text, source text, kind text,
        status text, amount bigint, currency text, parent text, other_parents text[], target text, reference text,
        natural_reference text, key text, created_at timestamptz, updated_at timestamptz, fee bigint, net bigint,
        settlement_amount bigint, settlement_currency text, created_by text, failure_reason text, caused_by text,
        parent_total bigint, metadata jsonb, owner text, needs_read boolean, seen_at timestamptz, look_id text,
        blob_id text)
    ON CONFLICT (tenant, system, account, mode, id) DO NOTHING
    RETURNING id
),
changed AS (
    UPDATE reconciler.effects e
    SET source = r.source, kind = r.kind, status = r.status, amount = r.amount, currency = r.currency,
        parent = r.parent, other_parents = coalesce(r.other_parents, '{}'), target = r.target,
        reference = r.reference, natural_reference = r.natural_reference, key = r.key, created_at = r.created_at,
        updated_at = r.updated_at, fee = r.fee, net = r.net, settlement_amount = r.settlement_amount,
        settlement_currency = r.settlement_currency, created_by = r.created_by,
        failure_reason = r.failure_reason, caused_by = r.caused_by, parent_total = r.parent_total,
        metadata = r.metadata, owner = r.owner, needs_read = r.needs_read,
        seen_at = coalesce(r.seen_at, e.seen_at),
        look_id = CASE WHEN r.seen_at IS NULL THEN e.look_id ELSE r.look_id END,
        blob_id = coalesce(r.blob_id, e.blob_id)
    FROM json_to_recordset($4::json) AS r (system text, account text, mode text, id text, source text, kind text,
        status text, amount bigint, currency text, parent text, other_parents text[], target text, reference text,
        natural_reference text, key text, created_at timestamptz, updated_at timestamptz, fee bigint, net bigint,
        settlement_amount bigint, settlement_currency text, created_by text, failure_reason text, caused_by text,
        parent_total bigint, metadata jsonb, owner text, needs_read boolean, seen_at timestamptz, look_id text,
        blob_id text)
    WHERE e.tenant = $1 AND e.system = r.system AND e.account = r.account AND e.mode = r.mode AND e.id = r.id
),
kept AS (
    INSERT INTO reconciler.blobs (tenant, id, salt, bytes, about)
    SELECT $1, b.id, b.salt, b.bytes, b.about
    FROM unnest($7::text[], $8::bytea[], $9::bytea[], $10::text[]) AS b (id, salt, bytes, about)
    ON CONFLICT (tenant, id) DO NOTHING
),
told AS (
    INSERT INTO reconciler.effect_changes (tenant, system, account, mode, id, change_id, at, before, after, look_id)
    SELECT $1, r.system, r.account, r.mode, r.id, r.change_id, $2, r.before, r.after, r.look_id
    FROM json_to_recordset($5::json) AS r (system text, account text, mode text, id text, change_id text,
        before jsonb, after jsonb, look_id text)
    ON CONFLICT (tenant, system, account, mode, id, change_id) DO NOTHING
),
linked AS (
    INSERT INTO reconciler.matches AS m (tenant, system, account, mode, effect_id, operation_id, basis, certainty,
        role, look_id, at)
    -- Where no look of this batch showed the effect, the one did that it was stored with.
    SELECT $1, r.system, r.account, r.mode, r.effect_id, r.operation_id, r.basis, r.certainty, r.role,
        coalesce(r.look_id, (SELECT e.look_id FROM reconciler.effects e WHERE e.tenant = $1 AND e.system = r.system
            AND e.account = r.account AND e.mode = r.mode AND e.id = r.effect_id)), $2
    FROM json_to_recordset($6::json) AS r (system text, account text, mode text, effect_id text, operation_id text,
        basis text, certainty text, role text, look_id text)
    -- The same operation's link may change its role; another one's is never taken over.
    ON CONFLICT (tenant, system, account, mode, effect_id) DO UPDATE
        SET basis = excluded.basis, certainty = excluded.certainty, role = excluded.role,
            look_id = excluded.look_id, at = excluded.at
        WHERE m.operation_id = excluded.operation_id
    RETURNING effect_id
)
SELECT (SELECT count(*) FROM fresh), (SELECT count(*) FROM linked)
