CREATE OR REPLACE FUNCTION reconciler.key_serves(op reconciler.operations, policy jsonb, until timestamptz)
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether the provider was given the key, will be given it again, and still knows it at
-- that time, with the policy's margin. Else a repeat would be a new order.
BEGIN
    RETURN coalesce((policy ->> 'key_lifetime')::interval > interval '0'
        AND 'key' = ANY (op.marks) AND 'key' = ANY (reconciler.policy_marks(policy))
        AND until < op.key_expires_at - (policy ->> 'key_margin')::interval, false);
END $$;
