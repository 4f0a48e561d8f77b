CREATE OR REPLACE FUNCTION reconciler.decline_claim(op reconciler.operations, reason text, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Nothing may be sent: how the operation stands, and why.
DECLARE
    wait integer := reconciler.seconds_until(
        CASE WHEN op.state = 'in_progress' THEN op.lease_until ELSE op.retry_at END, now);
BEGIN
    RETURN jsonb_build_object('claimed', false, 'operation_id', op.operation_id, 'key', op.key, 'request', NULL,
            'marker', NULL, 'token', NULL, 'attempt', NULL, 'lease_until', NULL, 'send_before', NULL, 'state', op.state)
        || reconciler.verdict_of(op.state)
        || jsonb_strip_nulls(jsonb_build_object('reason', reason, 'retry_after_seconds', wait))
        || CASE WHEN op.result IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('result', op.result) END;
END $$;
