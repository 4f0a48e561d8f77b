CREATE OR REPLACE FUNCTION reconciler.canonical_request(caller text, input jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- What will be sent, in the one form that is stored, hashed and given to every attempt.
BEGIN
    IF nullif(input -> 'request', 'null') IS NULL THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "request" is missing', caller),
            'Give what is sent to the provider, or {} when nothing is.');
    END IF;
    PERFORM reconciler.check_size(caller, input, 'request');
    RETURN reconciler.canonical_json(input -> 'request');
END $$;
