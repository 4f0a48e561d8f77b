CREATE OR REPLACE FUNCTION reconciler.check_fields(caller text, input jsonb, allowed text[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
-- A field that is misspelt and ignored could be the one that makes a payment the
-- right one, so unknown fields are refused by name.
DECLARE
    unknown text;
BEGIN
    IF input IS NULL OR jsonb_typeof(input) <> 'object' THEN
        PERFORM reconciler.refuse_input(
            format('%s: the argument must be a JSON object', caller),
            'Its fields are: ' || array_to_string(allowed, ', ') || '.');
    END IF;
    IF input - allowed <> '{}' THEN
        SELECT min(k) INTO unknown FROM jsonb_object_keys(input - allowed) k;
        PERFORM reconciler.refuse_input(
            format('%s: there is no field "%s"', caller, left(unknown, 40)),
            'Its fields are: ' || array_to_string(allowed, ', ') || '.');
    END IF;
END $$;
