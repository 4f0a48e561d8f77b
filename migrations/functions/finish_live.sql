CREATE OR REPLACE FUNCTION reconciler.finish_live(op reconciler.operations, asked record, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- The answer under a live lease. The row is locked by the caller.
DECLARE
    policy jsonb := reconciler.policy_of(op);
    class text := CASE WHEN asked.class IN ('succeeded', 'accepted') AND asked.effect_id IS NULL
        THEN 'indeterminate' ELSE asked.class END; -- a success that cannot be named cannot be checked
    entry text;
    closes boolean;
    told boolean;
    due timestamptz;
BEGIN
    op.state := reconciler.state_after(class, op.in_doubt, coalesce((policy -> 'repeat_answer')::boolean, false));
    closes := op.state IN ('succeeded', 'failed');
    -- People were told of it: the next sweep looks at it at once and ends what no longer holds.
    told := closes AND EXISTS (SELECT 1 FROM reconciler.findings f
        WHERE f.tenant = op.tenant AND f.operation_ids && ARRAY[op.operation_id] AND f.state NOT IN ('settled', 'ended'));
    IF class = 'not_sent' AND NOT op.in_doubt THEN
        op.sent_at := NULL; -- no attempt so far did anything, and the provider has not seen the key
        op.key_expires_at := NULL;
    END IF;
    op.in_doubt := op.in_doubt OR class IN ('accepted', 'stored_error', 'indeterminate');
    op.last_class := class;
    op.effect_id := coalesce(asked.effect_id, op.effect_id);
    op.result := coalesce(reconciler.kept_result(policy, asked.result), op.result);
    op.unknown_since := CASE op.state WHEN 'pending' THEN NULL WHEN 'unknown' THEN coalesce(op.unknown_since, now)
        ELSE op.unknown_since END;
    op.retry_at := CASE WHEN NOT closes THEN now + reconciler.back_off(policy, op.attempts) END;
    due := CASE
        WHEN told THEN now
        WHEN closes THEN reconciler.first_reverification(op.operation_id, now)
        WHEN op.state = 'pending' THEN greatest(
            op.created_at + (policy ->> 'stale_pending')::interval, now + (policy ->> 'check_after')::interval)
        ELSE reconciler.planned_check(now + (policy ->> 'check_after')::interval, op.key_expires_at, policy, now) END;
    op.chain_seq := op.chain_seq + 1;
    entry := reconciler.entry_body('attempt_finished', now, jsonb_build_object(
        'applied', true, 'attempt', op.attempts, 'holder', op.lease_holder, 'class', class,
        'reported', nullif(asked.class, class), 'effect_id', asked.effect_id, 'error_code', asked.error_code,
        'request_id', asked.request_id, 'from', 'in_progress', 'to', op.state));
    op.chain_head := reconciler.entry_hash(op.chain_head, entry);
    UPDATE reconciler.operations o
        SET state = op.state, sent_at = op.sent_at, key_expires_at = op.key_expires_at, in_doubt = op.in_doubt,
            last_class = op.last_class, effect_id = op.effect_id, result = op.result, error_code = asked.error_code,
            unknown_since = op.unknown_since, retry_at = op.retry_at, lease_token = NULL, lease_until = now,
            closed_at = CASE WHEN closes THEN now END, slot = CASE WHEN closes THEN NULL ELSE op.slot END,
            version = op.version + 1, chain_seq = op.chain_seq, chain_head = op.chain_head
        WHERE o.tenant = op.tenant AND o.operation_id = op.operation_id;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, op.chain_seq, 'attempt_finished', now, entry, op.chain_head);
    UPDATE reconciler.checks c SET closed = closes AND NOT told, next_check = due, rung = 0
        WHERE c.tenant = op.tenant AND c.operation_id = op.operation_id;
    RETURN jsonb_build_object('state', op.state, 'applied', true) || reconciler.verdict_of(op.state)
        || jsonb_strip_nulls(jsonb_build_object('retry_after_seconds', reconciler.retry_after(op, policy, now)));
END $$;
