CREATE OR REPLACE FUNCTION reconciler.finish_stale(op reconciler.operations, asked record, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- An answer under a lease that is over. It changes no state, for others may have
-- concluded since; it is kept as evidence, and the operation is looked at now. Rules say
-- whether it disagrees.
DECLARE
    entry text := reconciler.entry_body('attempt_finished', now, jsonb_build_object(
        'applied', false, 'class', asked.class, 'effect_id', asked.effect_id, 'error_code', asked.error_code,
        'request_id', asked.request_id, 'from', op.state, 'to', op.state,
        'reason', 'The lease was over: the answer is kept and changes nothing.'));
BEGIN
    op.chain_seq := op.chain_seq + 1;
    op.chain_head := reconciler.entry_hash(op.chain_head, entry);
    UPDATE reconciler.operations o
        SET version = op.version + 1, chain_seq = op.chain_seq, chain_head = op.chain_head
        WHERE o.tenant = op.tenant AND o.operation_id = op.operation_id;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, op.chain_seq, 'attempt_finished', now, entry, op.chain_head);
    UPDATE reconciler.checks c SET next_check = now
        WHERE c.tenant = op.tenant AND c.operation_id = op.operation_id;
    RETURN jsonb_build_object('state', op.state, 'applied', false) || reconciler.verdict_of(op.state);
END $$;
