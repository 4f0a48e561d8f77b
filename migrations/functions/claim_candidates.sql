CREATE OR REPLACE FUNCTION reconciler.claim_candidates(
    for_tenant text, for_action text, policy jsonb, lease_until timestamptz, now timestamptz)
RETURNS text[]
LANGUAGE plpgsql VOLATILE AS $$
-- Operations of the action that look claimable, the longest-waiting first. Nothing is
-- locked yet: the caller locks one and judges it again. Enough of them that many
-- workers at once find one each.
DECLARE
    most CONSTANT integer := 50;
    limit_attempts integer := (policy -> 'per_operation')::integer;
    same_key CONSTANT boolean := policy ->> 'repeat' = 'same_key';
    keyless CONSTANT boolean := reconciler.needs_no_key(policy);
    -- Null where the provider keeps no keys or is given none: then no key is good enough.
    key_needed_until CONSTANT timestamptz := CASE
        WHEN (policy ->> 'key_lifetime')::interval > interval '0' AND 'key' = ANY (reconciler.policy_marks(policy))
        THEN lease_until + (policy ->> 'key_margin')::interval END;
    found text[];
BEGIN
    -- A part whose condition on the policy does not hold reads nothing: where no unknown
    -- one is claimable, they, who may be many, stay unread.
    SELECT array_agg(o.operation_id ORDER BY o.waits_since, o.operation_id) INTO found FROM (
        (SELECT p.operation_id, coalesce(p.retry_at, p.created_at) AS waits_since FROM reconciler.operations p
            WHERE p.tenant = for_tenant AND p.action = for_action AND p.state = 'pending'
                AND p.attempts < limit_attempts AND p.request IS NOT NULL
                AND (NOT p.in_doubt OR p.released
                    AND (keyless OR p.key_expires_at > key_needed_until AND 'key' = ANY (p.marks)))
            ORDER BY coalesce(p.retry_at, p.created_at), p.operation_id LIMIT most)
        UNION ALL
        (SELECT u.operation_id, coalesce(u.retry_at, u.lease_until, u.created_at) FROM reconciler.operations u
            WHERE same_key AND NOT keyless
                AND u.tenant = for_tenant AND u.action = for_action AND u.state IN ('unknown', 'in_progress')
                AND (u.state = 'unknown' OR u.lease_until <= now)
                AND coalesce(u.retry_at, u.lease_until, u.created_at) <= now
                AND u.attempts < limit_attempts AND u.request IS NOT NULL
                AND u.last_class IS DISTINCT FROM 'stored_error'
                AND u.key_expires_at > key_needed_until AND 'key' = ANY (u.marks)
            ORDER BY coalesce(u.retry_at, u.lease_until, u.created_at), u.operation_id LIMIT most)
        UNION ALL
        (SELECT u.operation_id, coalesce(u.retry_at, u.lease_until, u.created_at) FROM reconciler.operations u
            WHERE same_key AND keyless
                AND u.tenant = for_tenant AND u.action = for_action AND u.state IN ('unknown', 'in_progress')
                AND (u.state = 'unknown' OR u.lease_until <= now)
                AND coalesce(u.retry_at, u.lease_until, u.created_at) <= now
                AND u.attempts < limit_attempts AND u.request IS NOT NULL
                AND u.last_class IS DISTINCT FROM 'stored_error'
            ORDER BY coalesce(u.retry_at, u.lease_until, u.created_at), u.operation_id LIMIT most)) o;
    RETURN coalesce(found, '{}');
END $$;
