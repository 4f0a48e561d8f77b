CREATE OR REPLACE FUNCTION reconciler.lease_for(policy jsonb, wished interval) RETURNS interval
LANGUAGE plpgsql IMMUTABLE AS $$
-- The wished lease, cut to the policy's longest, which is at most five minutes.
BEGIN
    RETURN least(wished, (policy ->> 'lease_max')::interval, interval '300 seconds');
END $$;
