CREATE OR REPLACE FUNCTION reconciler.propose(
    f reconciler.findings, asked record, plan jsonb, person text, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Keeps what one person wants until another one says the same. A new proposal takes the
-- place of an older one; the same person's same words are none, and nothing is written.
DECLARE
    told CONSTANT jsonb := jsonb_build_object('two', plan -> 'two', 'operation_id', plan -> 'operation_id', 'effect_id', plan -> 'effect_id');
    op reconciler.operations;
BEGIN
    IF reconciler.proposed_already(f, asked, plan) AND f.proposal ->> 'person' = person
        AND f.proposal ->> 'reason' = asked.reason AND f.proposal -> 'two' = plan -> 'two' THEN
        RETURN reconciler.person_answer('proposed', f, person, told || '{"repeated": true}');
    END IF;
    f.proposal := jsonb_strip_nulls(jsonb_build_object('verb', asked.verb, 'person', person, 'at', reconciler.utc_text(now),
        'reason', asked.reason, 'two', plan -> 'two', 'operation_id', plan -> 'operation_id', 'effect_id', plan -> 'effect_id',
        'action', plan -> 'action', 'openings', f.openings)) || jsonb_build_object('observed', f.observed);
    f.version := f.version + 1;
    UPDATE reconciler.findings x SET proposal = f.proposal, version = f.version
        WHERE x.tenant = f.tenant AND x.finding_id = f.finding_id;
    FOR op IN SELECT * FROM reconciler.operations o
        WHERE o.tenant = f.tenant AND o.operation_id = ANY (f.operation_ids || (plan ->> 'operation_id'))
        ORDER BY o.operation_id
    LOOP
        PERFORM reconciler.person_entry(op, op.state, f, asked, person, now, jsonb_build_object(
            'proposed', true, 'two', plan -> 'two', 'effect_id', plan -> 'effect_id',
            'look_ids', CASE WHEN plan ? 'look_id' THEN jsonb_build_array(plan -> 'look_id') END));
    END LOOP;
    RETURN reconciler.person_remember(f, asked, now, reconciler.person_answer('proposed', f, person, told),
        told || jsonb_build_object('proposed', true, 'action', plan -> 'action'));
END $$;
