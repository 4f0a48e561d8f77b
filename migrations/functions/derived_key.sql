CREATE OR REPLACE FUNCTION reconciler.derived_key(for_case text, action text, target text, step bigint) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- The key of callers with stable facts: the first 40 hex digits of SHA-256 over the
-- compact JSON array, which keeps the fields apart: ("a|b","c") is not ("a","b|c").
BEGIN
    RETURN left(encode(sha256(convert_to(
        '[' || to_json(for_case)::text || ',' || to_json(action)::text || ','
            || to_json(target)::text || ',' || step::text || ']', 'UTF8')), 'hex'), 40);
END $$;
