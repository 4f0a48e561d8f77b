CREATE OR REPLACE FUNCTION reconciler.policy_of(op reconciler.operations) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The policy in force, or the one that the operation was opened under when its action
-- was taken out of the configuration meanwhile: what was begun must still end.
DECLARE
    body jsonb;
BEGIN
    SELECT p.body INTO body FROM reconciler.policies p
        WHERE p.tenant = op.tenant AND p.action = op.action
            AND (p.active OR p.version = op.policy_version)
        ORDER BY p.active DESC LIMIT 1;
    RETURN body;
END $$;
