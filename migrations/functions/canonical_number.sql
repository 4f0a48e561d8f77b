CREATE OR REPLACE FUNCTION reconciler.canonical_number(value numeric) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- Beyond 2^53 and between whole numbers, languages disagree on what a JSON number is;
-- a hash must not depend on that.
BEGIN
    IF value <> trunc(value) THEN
        PERFORM reconciler.refuse_input(
            format('request: %s is not a whole number', left(value::text, 40)),
            'Write amounts in minor units (cents), and other fractions as a text in quotes.');
    END IF;
    IF abs(value) > 9007199254740992 THEN
        PERFORM reconciler.refuse_input(
            format('request: %s is beyond 2^53, where JSON numbers lose digits', left(value::text, 40)),
            'Write it as a text in quotes.');
    END IF;
    RETURN trunc(value)::text;
END $$;
