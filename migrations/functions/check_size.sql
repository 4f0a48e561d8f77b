CREATE OR REPLACE FUNCTION reconciler.check_size(caller text, input jsonb, field text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
-- The limit is on compact JSON. jsonb's own text has a space after every comma and
-- colon, so it is at most twice as long; only what is near the limit is measured twice.
DECLARE
    bytes integer := octet_length((input -> field)::text);
BEGIN
    IF bytes > 131072
        OR bytes > 65536 AND octet_length(reconciler.canonical_json(input -> field, false)) > 65536 THEN
        PERFORM reconciler.refuse_input(
            format('%s: field "%s" has about %s bytes, at most 65536 are kept', caller, field, bytes),
            'Keep large content elsewhere and give a reference to it.');
    END IF;
END $$;
