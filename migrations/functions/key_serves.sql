CREATE OR REPLACE FUNCTION reconciler.key_serves(op reconciler.operations, policy jsonb, until timestamptz)
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether the provider still knows the key at that time, with the policy's margin.
-- After that a repeat would be a new order.
BEGIN
    RETURN op.key_expires_at IS NOT NULL
        AND until < op.key_expires_at - (policy ->> 'key_margin')::interval;
END $$;
