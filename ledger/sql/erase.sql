-- Erases what may be personal of operations and their effects, and tells it in the
-- journal. The caller holds the row locks of both.
-- $1 tenant  $2 now  $3 journal entries  $4..$7 system, account, mode, id of effects  $8 what bytes are about
WITH entries AS MATERIALIZED (
    SELECT r.*, o.request IS NOT NULL OR o.metadata IS NOT NULL OR o.result IS NOT NULL AS had
    FROM json_to_recordset($3::json) AS r (operation_id text, body text)
    JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = r.operation_id
),
moved AS (
    UPDATE reconciler.operations o
    SET request = NULL, metadata = NULL, result = NULL,
        version = o.version + 1,
        chain_seq = o.chain_seq + 1,
        chain_head = sha256(o.chain_head || convert_to(r.body, 'UTF8'))
    FROM entries r
    WHERE o.tenant = $1 AND o.operation_id = r.operation_id
    RETURNING o.operation_id, o.chain_seq, o.chain_head, r.body
),
told AS (
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
    SELECT $1, m.operation_id, m.chain_seq, 'erased', $2, m.body, m.chain_head FROM moved m
),
named AS MATERIALIZED (
    SELECT i.* FROM unnest($4::text[], $5::text[], $6::text[], $7::text[]) AS i (system, account, mode, id)
),
plain AS (
    UPDATE reconciler.effects e SET metadata = NULL, created_by = NULL
    FROM named i
    WHERE e.tenant = $1 AND e.system = i.system AND e.account = i.account AND e.mode = i.mode AND e.id = i.id
        AND (e.metadata IS NOT NULL OR e.created_by IS NOT NULL)
    RETURNING e.id
),
changes AS (
    UPDATE reconciler.effect_changes c
    SET before = c.before - ARRAY['metadata', 'created_by'], after = c.after - ARRAY['metadata', 'created_by']
    FROM named i
    WHERE c.tenant = $1 AND c.system = i.system AND c.account = i.account AND c.mode = i.mode AND c.id = i.id
),
bytes AS (
    UPDATE reconciler.blobs b SET bytes = NULL, salt = NULL, erased_at = $2
    WHERE b.tenant = $1 AND b.about = ANY ($8::text[]) AND b.bytes IS NOT NULL
    RETURNING b.id
)
SELECT (SELECT count(*) FROM entries r WHERE r.had), (SELECT count(*) FROM plain), (SELECT count(*) FROM bytes)
