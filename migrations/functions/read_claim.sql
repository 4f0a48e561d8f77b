CREATE OR REPLACE FUNCTION reconciler.read_claim(
    input jsonb, OUT operation_id text, OUT action text, OUT holder text, OUT call text,
    OUT lease interval, OUT own_write boolean)
LANGUAGE plpgsql STABLE AS $$
-- What claim_operation was given, checked.
DECLARE
    me CONSTANT text := 'claim_operation';
    seconds bigint;
BEGIN
    PERFORM reconciler.check_fields(me, input,
        ARRAY['operation_id', 'action', 'holder', 'call', 'lease_seconds', 'own_write']);
    operation_id := reconciler.text_field(me, input, 'operation_id');
    action := reconciler.text_field(me, input, 'action');
    IF (operation_id IS NULL) = (action IS NULL) THEN
        PERFORM reconciler.refuse_input(me || ': give either "operation_id" or "action"',
            'With "operation_id" that one is claimed, with "action" the longest-waiting one of it.');
    END IF;
    holder := reconciler.text_field(me, input, 'holder', true);
    call := reconciler.text_field(me, input, 'call');
    seconds := reconciler.integer_field(me, input, 'lease_seconds');
    IF seconds <= 0 THEN
        PERFORM reconciler.refuse_input(format('%s: "lease_seconds" is %s, not above 0', me, seconds),
            'Leave the field out for the policy''s longest lease.');
    END IF;
    lease := make_interval(secs => least(seconds, 300));
    IF jsonb_typeof(coalesce(input -> 'own_write', 'false')) NOT IN ('boolean', 'null') THEN
        PERFORM reconciler.refuse_input(me || ': "own_write" must be true or false', 'Write it without quotes.');
    END IF;
    own_write := coalesce(nullif(input -> 'own_write', 'null')::boolean, false);
END $$;
