CREATE OR REPLACE FUNCTION reconciler.planned_check(
    wished timestamptz, key_expires_at timestamptz, policy jsonb, now timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE AS $$
-- The wished time, but never so late that no look falls before the key is too old for
-- a safe repeat.
DECLARE
    last_call timestamptz := key_expires_at - (policy ->> 'key_margin')::interval - interval '10 minutes';
BEGIN
    RETURN CASE WHEN last_call > now THEN least(wished, last_call) ELSE wished END;
END $$;
