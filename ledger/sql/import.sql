-- Inserts imported operations that are not there yet, each with its first journal entry
-- and its plan, and gives back their ids.
-- $1 tenant  $2 now  $3 rows
WITH input AS MATERIALIZED (
    SELECT r.* FROM json_to_recordset($3::json) AS r (operation_id text, source text, action text, target text,
        parent text, key text, amount bigint, currency text, state text, created_at timestamptz,
        sent_at timestamptz, closed_at timestamptz, effect_id text, account text, mode text, reference text,
        "group" text, run text, tool_call text, "case" text, step bigint, error_code text, marks text[],
        metadata jsonb, policy_version integer, attempts integer, in_doubt boolean, lease_until timestamptz,
        key_expires_at timestamptz, unknown_since timestamptz, body text, hash text, closed boolean,
        next_check timestamptz, rung integer)
),
fresh AS (
    INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency,
        state, created_at, sent_at, closed_at, effect_id, account, mode, reference, "group", run, tool_call, "case",
        step, error_code, marks, metadata, policy_version, attempts, in_doubt, lease_until, key_expires_at,
        unknown_since, chain_seq, chain_head)
    SELECT $1, r.operation_id, r.source, r.action, r.target, r.parent, r.key, r.amount, r.currency,
        r.state, r.created_at, r.sent_at, r.closed_at, r.effect_id, r.account, r.mode, r.reference, r."group", r.run,
        r.tool_call, r."case", r.step, r.error_code, r.marks, r.metadata, r.policy_version, r.attempts, r.in_doubt,
        r.lease_until, r.key_expires_at, r.unknown_since, 1, decode(r.hash, 'hex')
    FROM input r
    ON CONFLICT DO NOTHING
    RETURNING operation_id
),
told AS (
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
    SELECT $1, r.operation_id, 1, 'opened', $2, r.body, decode(r.hash, 'hex')
    FROM fresh f JOIN input r ON r.operation_id = f.operation_id
    RETURNING operation_id
),
planned AS (
    INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check, rung)
    SELECT $1, r.operation_id, r.source, r.closed, r.next_check, r.rung
    FROM fresh f JOIN input r ON r.operation_id = f.operation_id
    RETURNING operation_id
)
SELECT t.operation_id FROM told t
