CREATE OR REPLACE FUNCTION reconciler.read_approve(
    input jsonb, OUT finding_id text, OUT verb text, OUT version bigint, OUT reason text, OUT action_key text,
    OUT person text, OUT via text, OUT effect_id text, OUT operation_id text, OUT action text, OUT look jsonb,
    OUT effect jsonb, OUT mismatch jsonb)
LANGUAGE plpgsql STABLE AS $$
-- What approve was given, checked. Why something was decided is what everybody asks
-- later, so a reason is needed.
DECLARE
    me CONSTANT text := 'approve';
    common record;
BEGIN
    PERFORM reconciler.check_fields(me, input, ARRAY['finding_id', 'verb', 'version', 'reason', 'action_key', 'person',
        'via', 'effect_id', 'operation_id', 'action', 'look', 'effect', 'mismatch']);
    common := reconciler.read_person(me, input,
        ARRAY['happened', 'did-not-happen', 'release', 'accept', 'adopt', 'ignore', 'reject']);
    PERFORM reconciler.text_field(me, input, 'reason', true);
    SELECT common.finding_id, common.verb, common.version, common.reason, common.action_key, common.person, common.via
        INTO finding_id, verb, version, reason, action_key, person, via;
    effect_id := reconciler.text_field(me, input, 'effect_id');
    operation_id := reconciler.text_field(me, input, 'operation_id');
    action := reconciler.text_field(me, input, 'action');
    look := nullif(input -> 'look', 'null');
    effect := nullif(input -> 'effect', 'null');
    mismatch := nullif(input -> 'mismatch', 'null');
    IF effect IS NOT NULL AND look IS NULL OR look ->> 'effect_id' IS DISTINCT FROM (CASE WHEN look IS NOT NULL THEN effect_id END)
        OR effect ->> 'id' <> effect_id THEN
        PERFORM reconciler.refuse_input(me || ': "look" and "effect" must be about the effect that "effect_id" names',
            'Look that one up, or leave both out.');
    END IF;
END $$;
