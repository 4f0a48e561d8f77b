CREATE OR REPLACE FUNCTION reconciler.back_off(policy jsonb, attempts integer) RETURNS interval
LANGUAGE plpgsql VOLATILE AS $$
-- Base doubled with each attempt, at most max, with full jitter, so that callers who
-- failed together do not come back together.
BEGIN
    RETURN random() * least(
        (policy #>> '{backoff,base}')::interval * power(2, least(attempts, 31) - 1),
        (policy #>> '{backoff,max}')::interval);
END $$;
