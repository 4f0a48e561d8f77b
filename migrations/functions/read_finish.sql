CREATE OR REPLACE FUNCTION reconciler.read_finish(
    input jsonb, OUT operation_id text, OUT token text, OUT class text, OUT effect_id text,
    OUT result jsonb, OUT error_code text, OUT request_id text)
LANGUAGE plpgsql STABLE AS $$
-- What finish_attempt was given, checked.
DECLARE
    me CONSTANT text := 'finish_attempt';
BEGIN
    PERFORM reconciler.check_fields(me, input,
        ARRAY['operation_id', 'token', 'class', 'effect_id', 'result', 'error_code', 'request_id']);
    operation_id := reconciler.text_field(me, input, 'operation_id', true);
    IF jsonb_typeof(input -> 'token') IS DISTINCT FROM 'string' THEN
        PERFORM reconciler.refuse_input(me || ': field "token" must be a text',
            'Give the token that claim_operation answered.');
    END IF;
    token := input ->> 'token'; -- any other text is a stale token, whatever it looks like
    class := reconciler.text_field(me, input, 'class', true);
    IF class NOT IN ('succeeded', 'accepted', 'refused', 'not_sent', 'stored_error', 'indeterminate') THEN
        PERFORM reconciler.refuse_input(format('%s: "%s" is not a class', me, left(class, 40)),
            'Classes are: succeeded, accepted, refused, not_sent, stored_error, indeterminate. When in doubt it is indeterminate.');
    END IF;
    effect_id := reconciler.text_field(me, input, 'effect_id');
    error_code := reconciler.text_field(me, input, 'error_code');
    request_id := reconciler.text_field(me, input, 'request_id');
    result := reconciler.json_field(me, input, 'result');
END $$;
