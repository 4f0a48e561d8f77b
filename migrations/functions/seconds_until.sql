CREATE OR REPLACE FUNCTION reconciler.seconds_until(instant timestamptz, now timestamptz) RETURNS integer
LANGUAGE plpgsql IMMUTABLE AS $$
-- Whole seconds, rounded up so that who waits them is never early; null when it is over.
BEGIN
    RETURN CASE WHEN instant > now THEN ceil(extract(epoch FROM instant - now))::integer END;
END $$;
