CREATE OR REPLACE FUNCTION reconciler.repeat_refusal(op reconciler.operations, policy jsonb, lease_until timestamptz)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- Why the same may not be sent again after an attempt in doubt; null when it may. Only a
-- key that the provider still knows, or the nature of the action, keeps a repeat from
-- being a second effect: no word of the policy does.
BEGIN
    RETURN CASE
        WHEN reconciler.needs_no_key(policy) OR reconciler.key_serves(op, policy, lease_until) THEN NULL
        WHEN (policy ->> 'key_lifetime')::interval <= interval '0' THEN format(
            'the provider keeps no keys and the action is %s; a repeat could happen a second time', policy ->> 'class')
        WHEN NOT ('key' = ANY (op.marks) AND 'key' = ANY (reconciler.policy_marks(policy))) THEN
            'its key is not given to the provider (marks); a repeat could happen a second time'
        ELSE 'the provider''s key lifetime is over or too near its end; a repeat could happen a second time'
    END;
END $$;
