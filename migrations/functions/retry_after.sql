CREATE OR REPLACE FUNCTION reconciler.retry_after(op reconciler.operations, policy jsonb, now timestamptz) RETURNS integer
LANGUAGE plpgsql STABLE AS $$
-- When the same operation may be claimed again; null when a claim would be refused then.
BEGIN
    RETURN CASE WHEN reconciler.claim_refusal(op, policy, NULL,
            op.retry_at + reconciler.lease_for(policy, NULL), op.retry_at) IS NULL
        THEN reconciler.seconds_until(op.retry_at, now) END;
END $$;
