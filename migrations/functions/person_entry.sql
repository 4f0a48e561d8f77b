CREATE OR REPLACE FUNCTION reconciler.person_entry(
    op reconciler.operations, before text, f reconciler.findings, asked record, person text, now timestamptz, details jsonb)
RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- Writes one operation as it is to be now, and what the person did as an entry of its
-- journal. The row is locked by the caller.
DECLARE
    entry text := reconciler.entry_body('person', now, jsonb_build_object(
        'by', person, 'role', session_user, 'via', asked.via, 'verb', asked.verb, 'reason', asked.reason,
        'finding', f.finding_id, 'finding_kind', f.kind, 'from', before, 'to', op.state) || details);
BEGIN
    op.chain_seq := op.chain_seq + 1;
    op.chain_head := reconciler.entry_hash(op.chain_head, entry);
    UPDATE reconciler.operations o
        SET state = op.state, effect_id = op.effect_id, error_code = op.error_code, closed_at = op.closed_at,
            unknown_since = op.unknown_since, released = op.released, retry_at = op.retry_at, slot = op.slot,
            lease_token = CASE WHEN op.state = 'in_progress' THEN o.lease_token END,
            version = op.version + 1, chain_seq = op.chain_seq, chain_head = op.chain_head
        WHERE o.tenant = op.tenant AND o.operation_id = op.operation_id;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, op.chain_seq, 'person', now, entry, op.chain_head);
END $$;
