CREATE OR REPLACE FUNCTION reconciler.move_operation(
    op reconciler.operations, f reconciler.findings, asked record, plan jsonb, person text, now timestamptz, proposer text)
RETURNS reconciler.operations
LANGUAGE plpgsql VOLATILE AS $$
-- Changes one operation as the decision says, plans its next look, and tells its journal.
DECLARE
    before text := op.state;
    mine boolean := asked.verb = 'accept' OR op.operation_id = plan ->> 'operation_id';
    linked text;
BEGIN
    IF mine AND plan ? 'effect' AND asked.verb IN ('happened', 'adopt') THEN
        PERFORM reconciler.link_effect(op, plan -> 'effect', plan ->> 'look_id', now);
    END IF;
    IF asked.verb = 'accept' THEN
        linked := reconciler.accepted_effect(op);
        IF linked IS NOT NULL AND op.state <> 'in_progress' THEN
            op.state := 'succeeded';
            op.effect_id := linked;
        END IF;
    ELSIF mine THEN
        op.state := coalesce(plan ->> 'to', op.state);
        op.effect_id := coalesce(plan ->> 'effect_id', op.effect_id);
        op.error_code := CASE WHEN op.state = 'failed' AND before <> 'failed' THEN 'did_not_happen'
            WHEN op.state <> 'succeeded' THEN op.error_code END;
    END IF;
    IF op.state <> before OR asked.verb = 'release' AND mine THEN
        op := reconciler.moved_operation(op, asked.verb = 'release' AND mine, now);
        PERFORM reconciler.plan_after_person(op, now);
    ELSIF mine AND asked.verb = 'adopt' AND op.state NOT IN ('succeeded', 'failed') THEN
        UPDATE reconciler.checks c SET next_check = now WHERE c.tenant = op.tenant AND c.operation_id = op.operation_id;
    END IF;
    PERFORM reconciler.person_entry(op, before, f, asked, person, now, jsonb_build_object(
        'proposed_by', proposer, 'effect_id', CASE WHEN mine THEN coalesce(plan ->> 'effect_id', linked) END,
        'release', CASE WHEN asked.verb = 'release' AND mine THEN true END,
        'look_ids', CASE WHEN mine AND plan ? 'look_id' THEN jsonb_build_array(plan -> 'look_id') END,
        'ended', jsonb_build_array(jsonb_build_object('id', f.finding_id, 'kind', f.kind))));
    RETURN op;
END $$;
