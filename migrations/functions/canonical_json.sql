CREATE OR REPLACE FUNCTION reconciler.canonical_json(value jsonb, whole_numbers boolean DEFAULT true, depth integer DEFAULT 0)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- RFC 8785 for what requests hold: objects with keys in UTF-16 order, no spaces, whole
-- numbers. PostgreSQL escapes a JSON string exactly as the RFC does. Without
-- whole_numbers other numbers stay as they are written: compact, but not canonical.
DECLARE
    compact text;
BEGIN
    IF depth > 64 THEN
        PERFORM reconciler.refuse_input('JSON nested deeper than 64 levels is not kept', 'Send a flatter value.');
    END IF;
    CASE jsonb_typeof(value)
    WHEN 'object' THEN
        SELECT string_agg(
                to_json(m.key)::text || ':' || reconciler.canonical_json(m.value, whole_numbers, depth + 1),
                ',' ORDER BY reconciler.utf16_order(m.key) COLLATE "C")
            INTO compact FROM jsonb_each(value) m;
        RETURN '{' || coalesce(compact, '') || '}';
    WHEN 'array' THEN
        SELECT string_agg(reconciler.canonical_json(e.value, whole_numbers, depth + 1), ',' ORDER BY e.ordinality)
            INTO compact FROM jsonb_array_elements(value) WITH ORDINALITY e;
        RETURN '[' || coalesce(compact, '') || ']';
    WHEN 'number' THEN
        RETURN CASE WHEN whole_numbers THEN reconciler.canonical_number(value::numeric) ELSE value::text END;
    ELSE
        RETURN value::text;
    END CASE;
END $$;
