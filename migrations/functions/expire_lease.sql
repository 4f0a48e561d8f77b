CREATE OR REPLACE FUNCTION reconciler.expire_lease(op reconciler.operations, now timestamptz)
RETURNS reconciler.operations
LANGUAGE plpgsql VOLATILE AS $$
-- A lease that ended without a finish: what was sent under it is in doubt, and its
-- holder's late answer is stale from here on. The claim planned the next check from the
-- lease's end, so that plan stands. The row is locked by the caller.
DECLARE
    entry text;
BEGIN
    op.state := 'unknown';
    op.in_doubt := true;
    op.lease_token := NULL;
    op.unknown_since := coalesce(op.unknown_since, op.lease_until);
    op.version := op.version + 1;
    op.chain_seq := op.chain_seq + 1;
    entry := reconciler.entry_body('decision', now, jsonb_build_object(
        'rule', 'lease_over', 'from', 'in_progress', 'to', op.state, 'attempt', op.attempts, 'holder', op.lease_holder,
        'lease_until', reconciler.utc_text(op.lease_until),
        'reason', 'The lease ended and nobody told how the attempt went.'));
    op.chain_head := reconciler.entry_hash(op.chain_head, entry);
    UPDATE reconciler.operations o
        SET state = op.state, in_doubt = true, lease_token = NULL, unknown_since = op.unknown_since,
            version = op.version, chain_seq = op.chain_seq, chain_head = op.chain_head
        WHERE o.tenant = op.tenant AND o.operation_id = op.operation_id;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, op.chain_seq, 'decision', now, entry, op.chain_head);
    RETURN op;
END $$;
