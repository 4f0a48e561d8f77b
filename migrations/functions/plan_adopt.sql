CREATE OR REPLACE FUNCTION reconciler.plan_adopt(op reconciler.operations, e reconciler.effects, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The effect belongs to this operation, because a person says so.
DECLARE
    policy jsonb := reconciler.policy_of(op);
    other reconciler.effects := reconciler.live_effect(op);
    refusal jsonb := coalesce(reconciler.not_adoptable(e, op.operation_id), reconciler.under_way(op));
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    IF e.mode <> op.mode OR e.account <> op.account OR e.system <> coalesce(policy ->> 'system', e.system)
        OR e.kind <> policy ->> 'effect' THEN
        RETURN reconciler.refusal(format('%s is a %s of account %s, mode %s, and operation %s makes a %s in account %s, mode %s',
                e.id, replace(e.kind, '_', ' '), e.account, e.mode, op.operation_id,
                replace(coalesce(policy ->> 'effect', 'effect'), '_', ' '), coalesce(op.account, 'not known'), op.mode),
            'An effect of another place or kind is never this operation''s; adopt it without naming one.');
    END IF;
    IF coalesce(nullif(other.id, e.id), CASE WHEN op.state = 'succeeded' THEN nullif(op.effect_id, e.id) END) IS NOT NULL THEN
        RETURN reconciler.refusal(format('operation %s already has %s', op.operation_id, coalesce(nullif(other.id, e.id), op.effect_id)),
            'A second effect of one operation is a duplicate; adopt it without naming one, for an operation of its own.');
    END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object(
        'to', CASE WHEN e.status = 'completed' THEN 'succeeded' WHEN e.status = 'in_flight' AND op.state <> 'succeeded' THEN 'unknown'
            ELSE op.state END,
        'two', CASE WHEN cardinality(reconciler.effect_differs(op, e, policy)) > 0 THEN 'differs' END));
END $$;
