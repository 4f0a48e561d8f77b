CREATE OR REPLACE FUNCTION reconciler.refuse_input(message text, hint text) RETURNS void
LANGUAGE plpgsql AS $$
-- One SQLSTATE for everything that the caller gave wrongly, so that a program can tell
-- it from faults worth a retry.
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, HINT = hint, ERRCODE = 'invalid_parameter_value';
END $$;
