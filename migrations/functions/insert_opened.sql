CREATE OR REPLACE FUNCTION reconciler.insert_opened(op reconciler.operations, entry text, stale_pending interval)
RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
-- False when another row has the key, the id or the slot. It waits for an inserter
-- whose transaction is still open.
DECLARE
    transaction_id text := pg_current_xact_id()::text;
    due timestamptz := op.created_at + stale_pending;
BEGIN
    INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency,
            state, created_at, account, mode, reference, "group", run, tool_call, "case", step, marks, metadata,
            agent, request, request_hash, policy_version, slot, opened_tx, chain_seq, chain_head)
        VALUES (op.tenant, op.operation_id, op.source, op.action, op.target, op.parent, op.key, op.amount, op.currency,
            op.state, op.created_at, op.account, op.mode, op.reference, op."group", op.run, op.tool_call, op."case",
            op.step, op.marks, op.metadata, op.agent, op.request, op.request_hash, op.policy_version, op.slot,
            transaction_id, 1, op.chain_head)
        ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, 1, 'opened', op.created_at, entry, op.chain_head);
    INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
        VALUES (op.tenant, op.operation_id, op.source, false, due);
    RETURN true;
END $$;
