CREATE OR REPLACE FUNCTION reconciler.claim_locked(
    op reconciler.operations, for_holder text, for_call text, wished interval, own_write boolean)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Judges one locked operation and starts its attempt where that is allowed.
DECLARE
    policy jsonb;
    now timestamptz := reconciler.clock(); -- read after the lock, for which it may have waited long
    until timestamptz;
    refusal text;
BEGIN
    IF op.opened_tx = pg_current_xact_id_if_assigned()::text AND NOT own_write THEN
        RETURN reconciler.decline_claim(op,
            'it was opened in this transaction, which is not committed: commit first, so that the intent survives a crash', now);
    END IF;
    SELECT p.body INTO policy FROM reconciler.policies p
        WHERE p.tenant = op.tenant AND p.action = op.action AND p.active;
    IF op.state = 'in_progress' AND op.lease_until <= now THEN
        op := reconciler.expire_lease(op, now);
    END IF;
    IF policy IS NULL THEN
        -- Where something may have been sent, that matters more to the caller.
        RETURN reconciler.decline_claim(op, format('there is no active policy for action "%s"', left(op.action, 100)), now)
            || CASE WHEN op.state = 'pending' THEN jsonb_build_object('verdict', 'rejected_by_policy')
                ELSE '{}' END;
    END IF;
    until := now + reconciler.lease_for(policy, wished);
    refusal := reconciler.claim_refusal(op, policy, for_call, until, now);
    IF refusal IS NOT NULL THEN
        RETURN reconciler.decline_claim(op, refusal, now);
    END IF;
    RETURN reconciler.start_attempt(op, policy, for_holder, for_call, until, now);
END $$;
