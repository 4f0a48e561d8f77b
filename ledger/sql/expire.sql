-- Ends leases that are over. The caller holds the operations' row locks.
-- $1 tenant  $2 now  $3 leases
WITH input AS (
    SELECT r.* FROM json_to_recordset($3::json)
        AS r (operation_id text, source text, next_check timestamptz, body text)
),
moved AS (
    UPDATE reconciler.operations o
    SET state = 'unknown', in_doubt = true, lease_token = NULL,
        -- A run with an earlier idea of time makes no doubt older than its lease.
        unknown_since = coalesce(o.unknown_since, greatest($2, o.lease_until)),
        version = o.version + 1,
        chain_seq = o.chain_seq + 1,
        chain_head = sha256(o.chain_head || convert_to(r.body, 'UTF8'))
    FROM input r
    WHERE o.tenant = $1 AND o.operation_id = r.operation_id
    RETURNING o.operation_id, o.chain_seq, o.chain_head, r.body
),
planned AS (
    INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
    SELECT $1, r.operation_id, r.source, false, r.next_check FROM input r
    ON CONFLICT (tenant, operation_id) DO UPDATE SET closed = false, next_check = excluded.next_check
),
told AS (
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
    SELECT $1, m.operation_id, m.chain_seq, 'decision', $2, m.body, m.chain_head FROM moved m
    RETURNING seq
)
SELECT count(*) FROM told
