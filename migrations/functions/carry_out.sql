CREATE OR REPLACE FUNCTION reconciler.carry_out(
    f reconciler.findings, asked record, plan jsonb, person text, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Does what was decided and settles the finding. Everything that it touches is locked.
DECLARE
    op reconciler.operations;
    proposer text := CASE WHEN plan ? 'two' THEN f.proposal ->> 'person' END;
    made text;
    answer jsonb;
BEGIN
    IF asked.verb = 'adopt' AND NOT plan ? 'operation_id' THEN
        made := reconciler.insert_adopted(plan -> 'effect', plan ->> 'action', person, f.tenant, now);
        plan := plan || jsonb_build_object('operation_id', made);
    END IF;
    f := reconciler.settle(f, asked.verb, person, asked.reason, proposer, now);
    FOR op IN SELECT * FROM reconciler.operations o
        WHERE o.tenant = f.tenant AND o.operation_id = ANY (f.operation_ids || (plan ->> 'operation_id'))
        ORDER BY o.operation_id
    LOOP
        op := reconciler.move_operation(op, f, asked, plan, person, now, proposer);
        IF op.operation_id = coalesce(plan ->> 'operation_id', f.operation_ids[1]) THEN
            answer := jsonb_build_object('operation_id', op.operation_id, 'operation_state', op.state);
        END IF;
    END LOOP;
    IF asked.mismatch IS NOT NULL AND plan ->> 'two' = 'differs' THEN
        PERFORM reconciler.settle_mismatch(f, asked, person, proposer, now);
    END IF;
    answer := reconciler.person_answer('done', f, person, coalesce(answer, '{}') || jsonb_build_object(
        'effect_id', plan -> 'effect_id', 'proposed_by', proposer, 'made', made));
    RETURN reconciler.person_remember(f, asked, now, answer, jsonb_build_object(
        'proposed_by', proposer, 'operation_id', plan -> 'operation_id', 'effect_id', plan -> 'effect_id', 'look_id', plan -> 'look_id'));
END $$;
