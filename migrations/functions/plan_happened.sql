CREATE OR REPLACE FUNCTION reconciler.plan_happened(
    op reconciler.operations, e reconciler.effects, asked record, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- It happened: the operation succeeded with this effect. Found and equal is the provider's
-- own word; without that, two people must say so. "Could not look" is not "not there", but
-- neither is it evidence.
DECLARE
    wanted CONSTANT text := coalesce(asked.effect_id, op.effect_id, e.id);
    seen CONSTANT text := asked.look ->> 'outcome';
    refusal jsonb := reconciler.under_way(op);
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    IF wanted IS NULL THEN
        RETURN reconciler.refusal('nobody said which effect it is',
            'Look it up at the provider and give its id.');
    END IF;
    IF op.state = 'succeeded' AND op.effect_id <> wanted THEN
        RETURN reconciler.refusal(format('operation %s already succeeded with %s', op.operation_id, op.effect_id),
            format('If %s is a second one, it was done twice: adopt it for an operation of its own.', left(wanted, 100)));
    END IF;
    IF e.id IS NULL THEN
        RETURN jsonb_build_object('to', 'succeeded', 'two', CASE seen WHEN 'absent' THEN 'not_found' WHEN 'found' THEN 'not_found'
            WHEN 'blind' THEN 'blind' ELSE 'not_asked' END);
    END IF;
    IF e.owner <> op.operation_id AND e.owner IS DISTINCT FROM op."group" THEN
        RETURN reconciler.refusal(format('%s belongs to operation %s', e.id, e.owner),
            'One effect is one operation''s: look for another one, or settle that operation first.');
    END IF;
    IF seen = 'absent' THEN
        RETURN '{"to": "succeeded", "two": "not_found"}';
    END IF;
    IF e.status <> 'completed' THEN
        RETURN reconciler.refusal(format('the provider says that %s is %s', e.id, replace(e.status, '_', ' ')),
            CASE e.status WHEN 'in_flight' THEN 'Wait: it is asked again by itself, and closes when it is done.'
                ELSE 'If nothing else was done, the answer is did-not-happen.' END);
    END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('to', 'succeeded', 'two', CASE
        WHEN seen = 'blind' THEN 'blind'
        WHEN seen IS NULL AND e.needs_read THEN 'not_asked'
        WHEN cardinality(reconciler.effect_differs(op, e, reconciler.policy_of(op))) > 0 THEN 'differs' END));
END $$;
