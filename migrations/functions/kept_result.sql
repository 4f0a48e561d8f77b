CREATE OR REPLACE FUNCTION reconciler.kept_result(policy jsonb, result jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- Only the fields that the policy names are kept: a provider's answer may hold secrets
-- and personal data.
DECLARE
    kept jsonb;
BEGIN
    IF jsonb_typeof(result) IS DISTINCT FROM 'object' THEN
        RETURN NULL;
    END IF;
    SELECT jsonb_object_agg(r.key, r.value) INTO kept FROM jsonb_each(result) r
        WHERE coalesce(policy -> 'result_fields', '[]') ? r.key;
    RETURN kept;
END $$;
