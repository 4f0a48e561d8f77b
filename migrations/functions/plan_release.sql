CREATE OR REPLACE FUNCTION reconciler.plan_release(op reconciler.operations, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- It may be sent once more under the same key. Whoever asks, the key must still keep the
-- repeat from being a second effect, and no other operation of the intent may be open.
DECLARE
    e reconciler.effects := reconciler.live_effect(op);
    policy jsonb := reconciler.policy_of(op);
    lease_until timestamptz;
    holder text;
    refusal jsonb := reconciler.under_way(op);
    why text;
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    IF op.state IN ('succeeded', 'failed') THEN
        RETURN reconciler.refusal(format('operation %s is closed: it is %s', op.operation_id, op.state),
            'A new decision opens a new operation.');
    END IF;
    IF e.id IS NOT NULL THEN
        RETURN reconciler.refusal(format('%s is at the provider and is %s: sending again would do it twice', e.id, replace(e.status, '_', ' ')),
            'Answer happened, or accept the difference.');
    END IF;
    lease_until := now + reconciler.lease_for(policy, NULL);
    IF op.last_class = 'stored_error' THEN
        why := 'the provider stored an error under its key; a repeat would only return it';
    ELSIF NOT reconciler.needs_no_key(policy) AND op.key_expires_at - (policy ->> 'key_margin')::interval <= lease_until THEN
        why := format('its key is safe until %s only, and that is over or too near', reconciler.people_time(op.key_expires_at - (policy ->> 'key_margin')::interval));
    ELSE
        op.state := 'pending'; -- as it would be claimed
        op.released := true;
        why := reconciler.claim_refusal(op, policy, NULL, lease_until, now);
    END IF;
    IF why IS NOT NULL THEN
        RETURN reconciler.refusal('it may not be sent again: ' || why,
            'Find out at the provider whether it happened, then answer happened or did-not-happen.');
    END IF;
    SELECT o.operation_id INTO holder FROM reconciler.operations o
        WHERE (policy -> 'one_open')::boolean AND o.tenant = op.tenant AND o.slot = reconciler.intent_slot(op)
            AND o.operation_id <> op.operation_id;
    IF holder IS NOT NULL THEN
        RETURN reconciler.refusal(format('operation %s of the same intent is open', holder),
            'Wait until that one is closed: releasing this one too could do it twice.');
    END IF;
    RETURN '{"to": "pending"}';
END $$;
