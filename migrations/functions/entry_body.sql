CREATE OR REPLACE FUNCTION reconciler.entry_body(kind text, at timestamptz, details jsonb) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- The exact text that is stored and hashed; it tells kind and time itself, so that
-- neither can be changed beside it.
BEGIN
    RETURN (jsonb_build_object('kind', kind, 'at', reconciler.utc_text(at)) || jsonb_strip_nulls(details))::text;
END $$;
