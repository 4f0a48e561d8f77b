CREATE OR REPLACE FUNCTION reconciler.start_attempt(
    op reconciler.operations, policy jsonb, for_holder text, for_call text, until timestamptz, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Takes the lease. The row is locked by the caller and was found claimable.
DECLARE
    before text := op.state;
    entry text;
    due timestamptz;
    send_before timestamptz;
BEGIN
    op.state := 'in_progress';
    op.sent_at := coalesce(op.sent_at, now);
    IF reconciler.needs_no_key(policy) THEN
        op.key_expires_at := NULL; -- no end of a key ends its repeats
    ELSIF op.key_expires_at IS NULL AND (policy ->> 'key_lifetime')::interval > interval '0' THEN
        op.key_expires_at := op.sent_at + (policy ->> 'key_lifetime')::interval;
    END IF;
    due := reconciler.planned_check(until + (policy ->> 'check_after')::interval, op.key_expires_at, policy, now);
    send_before := least(until, op.key_expires_at - (policy ->> 'key_margin')::interval);
    op.attempts := op.attempts + 1;
    -- A claim that names no call is a call of its own.
    op.call_attempts := CASE WHEN op.call = for_call THEN op.call_attempts + 1 ELSE 1 END;
    op.call := for_call;
    op.lease_token := replace(gen_random_uuid()::text, '-', '');
    op.lease_until := until;
    op.marks := reconciler.policy_marks(policy);
    op.chain_seq := op.chain_seq + 1;
    entry := reconciler.entry_body('attempt_started', now, jsonb_build_object(
        'attempt', op.attempts, 'holder', for_holder, 'call', for_call, 'from', before, 'to', op.state,
        'lease_until', reconciler.utc_text(until), 'marks', op.marks));
    op.chain_head := reconciler.entry_hash(op.chain_head, entry);
    UPDATE reconciler.operations o
        SET state = op.state, sent_at = op.sent_at, key_expires_at = op.key_expires_at, attempts = op.attempts,
            call = op.call, call_attempts = op.call_attempts, lease_token = op.lease_token,
            lease_holder = for_holder, lease_until = op.lease_until, marks = op.marks, released = false,
            retry_at = NULL, version = op.version + 1, chain_seq = op.chain_seq, chain_head = op.chain_head
        WHERE o.tenant = op.tenant AND o.operation_id = op.operation_id;
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (op.tenant, op.operation_id, op.chain_seq, 'attempt_started', now, entry, op.chain_head);
    -- What looks did not find before this attempt says nothing about it.
    UPDATE reconciler.checks c
        SET next_check = due, absent_looks = 0, absent_first = NULL, absent_last = NULL,
            absent_look_ids = '{}'
        WHERE c.tenant = op.tenant AND c.operation_id = op.operation_id;
    RETURN jsonb_build_object('claimed', true, 'operation_id', op.operation_id, 'key', op.key,
        'request', op.request::jsonb,
        'marker', jsonb_build_object(
            'name', coalesce(policy ->> 'marker', 'operation_id'), 'value', op.operation_id),
        'token', op.lease_token, 'attempt', op.attempts, 'lease_until', reconciler.utc_text(until),
        'send_before', reconciler.utc_text(send_before),
        -- The same as a duration, for a caller whose clock is not the server's.
        'send_within_seconds', round(extract(epoch FROM send_before - now), 3),
        -- Whether an earlier attempt may have had an effect: then a definite no to this
        -- one may say nothing about the operation.
        'in_doubt', op.in_doubt,
        'state', op.state, 'verdict', 'send', 'final', false);
END $$;
