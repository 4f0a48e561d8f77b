CREATE OR REPLACE FUNCTION reconciler.claim_by_action(
    my_tenant text, for_action text, for_holder text, for_call text, wished interval, own_write boolean)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- The longest-waiting claimable operation of the action. One that another transaction
-- has locked is being claimed or judged right now, so it is passed over.
DECLARE
    policy jsonb;
    now timestamptz := reconciler.clock();
    candidate text;
    op reconciler.operations;
    answer jsonb;
BEGIN
    SELECT p.body INTO policy FROM reconciler.policies p
        WHERE p.tenant = my_tenant AND p.action = for_action AND p.active;
    IF policy IS NULL THEN
        RETURN reconciler.decline_claim(NULL, format('there is no active policy for action "%s"', left(for_action, 100)), now)
            || jsonb_build_object('verdict', 'rejected_by_policy');
    END IF;
    FOREACH candidate IN ARRAY reconciler.claim_candidates(
        my_tenant, for_action, policy, now + reconciler.lease_for(policy, wished), now)
    LOOP
        SELECT * INTO op FROM reconciler.operations o
            WHERE o.tenant = my_tenant AND o.operation_id = candidate FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN op.operation_id IS NULL;
        answer := reconciler.claim_locked(op, for_holder, for_call, wished, own_write);
        IF (answer -> 'claimed')::boolean THEN
            RETURN answer;
        END IF;
    END LOOP;
    RETURN reconciler.decline_claim(NULL, 'no operation of this action is waiting', now);
END $$;
