CREATE OR REPLACE FUNCTION reconciler.json_field(caller text, input jsonb, field text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Free JSON: kept as it is, fractions too, for nothing compares it.
BEGIN
    PERFORM reconciler.check_size(caller, input, field);
    RETURN nullif(input -> field, 'null');
END $$;
