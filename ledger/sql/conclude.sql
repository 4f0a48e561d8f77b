-- Changes operations, appends one entry to the journal of each, and rewrites the
-- plans. The caller holds the operations' row locks and has compared their versions.
-- $1 tenant  $2 now  $3 moves  $4 plans
WITH moved AS (
    UPDATE reconciler.operations o
    SET state = r.state,
        closed_at = CASE WHEN r.state NOT IN ('succeeded', 'failed') THEN NULL
            WHEN o.state = r.state THEN o.closed_at ELSE $2 END,
        effect_id = coalesce(r.effect_id, o.effect_id),
        error_code = CASE WHEN r.error_code IS NOT NULL OR r.state = 'succeeded' THEN r.error_code ELSE o.error_code END,
        -- A repeat and a person's review do not make a doubt younger; an old and settled
        -- one does not make a new one older.
        unknown_since = CASE WHEN r.state = 'pending' THEN NULL
            WHEN r.state = 'unknown' AND o.state IN ('unknown', 'in_progress', 'manual_review')
                THEN coalesce(o.unknown_since, $2)
            WHEN r.state = 'unknown' THEN $2
            ELSE o.unknown_since END,
        lease_token = CASE WHEN r.state = 'in_progress' THEN o.lease_token END,
        -- A release that lapsed unused is remembered until a claim, so that it is not granted again and again.
        released = r.state IN ('pending', 'unknown') AND (r.released OR o.released),
        retry_at = CASE WHEN NOT r.released AND r.state NOT IN ('succeeded', 'failed') THEN o.retry_at END,
        slot = CASE WHEN r.state NOT IN ('succeeded', 'failed') THEN coalesce(o.slot, r.slot) END,
        version = o.version + 1,
        chain_seq = o.chain_seq + 1,
        chain_head = sha256(o.chain_head || convert_to(r.body, 'UTF8'))
    FROM json_to_recordset($3::json) AS r (operation_id text, state text, effect_id text, error_code text,
        released boolean, slot text, kind text, body text)
    WHERE o.tenant = $1 AND o.operation_id = r.operation_id
    RETURNING o.operation_id, o.chain_seq, o.chain_head, r.kind, r.body
),
told AS (
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
    SELECT $1, m.operation_id, m.chain_seq, m.kind, $2, m.body, m.chain_head
    FROM moved m
    RETURNING seq
),
planned AS (
    INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check, looks, blinds, rung,
        absent_looks, absent_first, absent_last, absent_look_ids, failures)
    SELECT $1, r.operation_id, r.source, r.closed, r.next_check, r.looks, r.blinds, r.rung,
        r.absent_looks, r.absent_first, r.absent_last, r.absent_look_ids, 0
    FROM json_to_recordset($4::json) AS r (operation_id text, source text, closed boolean, next_check timestamptz,
        looks integer, blinds integer, rung integer, absent_looks integer, absent_first timestamptz,
        absent_last timestamptz, absent_look_ids text[])
    ON CONFLICT (tenant, operation_id) DO UPDATE
        SET closed = excluded.closed, next_check = excluded.next_check, looks = excluded.looks,
            blinds = excluded.blinds, rung = excluded.rung, absent_looks = excluded.absent_looks,
            absent_first = excluded.absent_first, absent_last = excluded.absent_last,
            absent_look_ids = excluded.absent_look_ids, failures = 0
)
SELECT count(*) FROM told
