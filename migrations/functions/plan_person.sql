CREATE OR REPLACE FUNCTION reconciler.plan_person(f reconciler.findings, asked record, now timestamptz) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- What a person's decision would change, or why it is refused: {refusal, next}, else {to,
-- operation_id, effect: its identity, look_id, two: why a second person is needed}.
-- Nothing of the decision is carried out; what was looked up is kept, for it was seen.
DECLARE
    op reconciler.operations;
    e reconciler.effects;
    plan jsonb;
    wanted text := reconciler.person_operation(f, asked);
BEGIN
    plan := reconciler.unfit_answer(f, asked, wanted);
    IF plan IS NOT NULL THEN
        RETURN plan;
    END IF;
    SELECT * INTO op FROM reconciler.operations o WHERE o.tenant = f.tenant AND o.operation_id = wanted;
    IF asked.look IS NOT NULL THEN
        PERFORM reconciler.save_seen(f.tenant, asked.look, asked.effect, now);
    END IF;
    e := reconciler.person_effect(f, asked, op);
    plan := CASE asked.verb
        WHEN 'happened' THEN reconciler.plan_happened(op, e, asked, now)
        WHEN 'did-not-happen' THEN reconciler.plan_did_not_happen(op, now)
        WHEN 'release' THEN reconciler.plan_release(op, now)
        WHEN 'adopt' THEN CASE WHEN wanted IS NULL THEN reconciler.plan_adopt_new(e, asked)
            ELSE reconciler.plan_adopt(op, e, now) END
        WHEN 'ignore' THEN reconciler.plan_ignore(e)
        ELSE '{}' END;
    IF plan ? 'refusal' THEN
        RETURN plan;
    END IF;
    IF NOT plan ? 'two' AND reconciler.above_limit(f, op, e) THEN
        plan := plan || '{"two": "amount"}';
    END IF;
    RETURN jsonb_strip_nulls(plan || jsonb_build_object('operation_id', wanted,
        'effect_id', coalesce(e.id, CASE WHEN asked.verb = 'happened' THEN coalesce(asked.effect_id, op.effect_id) END),
        'effect', CASE WHEN e.id IS NOT NULL THEN jsonb_build_object(
            'system', e.system, 'account', e.account, 'mode', e.mode, 'id', e.id) END,
        'look_id', asked.look ->> 'look_id'));
END $$;
