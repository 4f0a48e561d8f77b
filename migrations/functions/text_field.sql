CREATE OR REPLACE FUNCTION reconciler.text_field(caller text, input jsonb, field text, required boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- Texts are kept byte by byte, never trimmed or normalised: what the provider was
-- given must be what is compared later. U+0000 cannot be in a jsonb at all.
DECLARE
    given jsonb := input -> field;
    value text;
BEGIN
    IF given IS NULL OR given = 'null' THEN
        IF required THEN
            PERFORM reconciler.refuse_input(
                format('%s: field "%s" is missing', caller, field), format('Give "%s" as a text.', field));
        END IF;
        RETURN NULL;
    END IF;
    IF jsonb_typeof(given) <> 'string' THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" must be a text, not a %s', caller, field, jsonb_typeof(given)),
            format('Write "%s" in quotes.', field));
    END IF;
    value := given #>> '{}';
    IF value = '' THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" is empty', caller, field), 'Leave the field out when there is nothing to say.');
    END IF;
    IF char_length(value) > 1024 THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" has %s characters, at most 1024 are kept', caller, field, char_length(value)),
            'Use a shorter text, such as a hash of the long one.');
    END IF;
    RETURN value;
END $$;
