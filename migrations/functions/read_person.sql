CREATE OR REPLACE FUNCTION reconciler.read_person(
    me text, input jsonb, verbs text[], OUT finding_id text, OUT verb text, OUT version bigint, OUT reason text,
    OUT action_key text, OUT person text, OUT via text)
LANGUAGE plpgsql STABLE AS $$
-- What every action of a person says, checked.
BEGIN
    finding_id := reconciler.text_field(me, input, 'finding_id', true);
    verb := reconciler.text_field(me, input, 'verb', true);
    IF NOT verb = ANY (verbs) THEN
        PERFORM reconciler.refuse_input(format('%s: "%s" is no verb', me, left(verb, 40)),
            'Verbs are: ' || array_to_string(verbs, ', ') || '.');
    END IF;
    version := reconciler.integer_field(me, input, 'version');
    reason := reconciler.text_field(me, input, 'reason');
    action_key := coalesce(reconciler.text_field(me, input, 'action_key'), gen_random_uuid()::text);
    person := reconciler.text_field(me, input, 'person');
    via := coalesce(reconciler.text_field(me, input, 'via'), 'sql');
END $$;
