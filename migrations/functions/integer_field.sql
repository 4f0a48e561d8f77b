CREATE OR REPLACE FUNCTION reconciler.integer_field(caller text, input jsonb, field text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
-- Whole numbers only, also in how they are written: 10.0 is a sign of floats at work,
-- and floats do not hold money.
DECLARE
    given jsonb := input -> field;
    digits text;
BEGIN
    IF given IS NULL OR given = 'null' THEN
        RETURN NULL;
    END IF;
    digits := given::text;
    IF jsonb_typeof(given) <> 'number' OR digits !~ '^-?[0-9]+$' THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" must be a whole number, not %s', caller, field, left(digits, 40)),
            'Amounts are whole numbers of minor units (cents): 42.00 EUR is 4200.');
    END IF;
    IF digits::numeric NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" is out of range', caller, field), 'It must fit in 64 bits.');
    END IF;
    RETURN digits::bigint;
END $$;
