CREATE OR REPLACE FUNCTION reconciler.plan_did_not_happen(op reconciler.operations, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- It did not happen: the operation failed. The provider's word to the contrary stands
-- above anybody's.
DECLARE
    e reconciler.effects := reconciler.live_effect(op);
    refusal jsonb := reconciler.under_way(op);
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    IF e.id IS NOT NULL THEN
        RETURN reconciler.refusal(format('%s is at the provider and is %s', e.id, replace(e.status, '_', ' ')),
            'Undo it at the provider first; the next look sees that. Or accept it as it is.');
    END IF;
    IF op.state = 'succeeded' THEN
        RETURN reconciler.refusal(format('operation %s is recorded as succeeded, and nothing seen says otherwise', op.operation_id),
            'Have it looked at with check_now: if its effect is gone, that is a finding of its own.');
    END IF;
    RETURN '{"to": "failed"}';
END $$;
