CREATE OR REPLACE FUNCTION reconciler.plan_adopt_new(e reconciler.effects, asked record) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The effect gets an operation of its own, of the action that makes such effects there.
DECLARE
    refusal jsonb := reconciler.not_adoptable(e, NULL);
    actions text[];
BEGIN
    IF refusal IS NOT NULL THEN
        RETURN refusal;
    END IF;
    IF e.status <> 'completed' THEN
        RETURN reconciler.refusal(format('the provider says that %s is %s', e.id, replace(e.status, '_', ' ')),
            CASE e.status WHEN 'in_flight' THEN 'Adopt it when it is done, or name the operation that it belongs to.' ELSE 'Ignore it, or accept it as it is.' END);
    END IF;
    SELECT array_agg(p.action ORDER BY p.action) INTO actions FROM reconciler.policies p
        WHERE p.tenant = e.tenant AND p.active AND p.body ->> 'source' = e.source AND p.body ->> 'effect' = e.kind
            AND p.action = coalesce(asked.action, p.action);
    IF actions IS NULL THEN
        RETURN reconciler.refusal(format('no %s in force makes a %s at %s', coalesce('action ' || asked.action, 'action'),
            replace(e.kind, '_', ' '), e.source), 'Configure one under actions and run `reconciler policy apply`, or name the operation that it belongs to.');
    END IF;
    IF cardinality(actions) > 1 THEN
        RETURN reconciler.refusal('several actions make such effects: ' || array_to_string(actions, ', '),
            'Say which one it was, with `reconciler findings resolve --as adopt --action`.');
    END IF;
    RETURN jsonb_build_object('to', 'succeeded', 'action', actions[1]);
END $$;
