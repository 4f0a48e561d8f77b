CREATE OR REPLACE FUNCTION reconciler.people_time(instant timestamptz) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- An instant in a sentence for people.
BEGIN
    RETURN to_char(instant AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"');
END $$;
