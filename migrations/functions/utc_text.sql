CREATE OR REPLACE FUNCTION reconciler.utc_text(instant timestamptz) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- RFC 3339 in UTC, whatever the zone of the session: the text is hashed and compared.
BEGIN
    RETURN to_char(instant AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
END $$;
