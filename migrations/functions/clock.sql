CREATE OR REPLACE FUNCTION reconciler.clock() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- The clock that judges leases. It is the server's, unless the database was made
-- with simulated time. Read it once into a variable and pass that on: a statement on
-- a distributed table must not call it.
DECLARE
    simulated timestamptz;
BEGIN
    IF to_regclass('reconciler.simulated_time') IS NULL THEN
        RETURN clock_timestamp();
    END IF;
    SELECT s.at INTO STRICT simulated FROM simulated_time s;
    RETURN simulated;
END $$;
