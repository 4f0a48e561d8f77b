CREATE OR REPLACE FUNCTION reconciler.current_tenant() RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- Callers never name the tenant: the database role does, by
-- ALTER ROLE … SET reconciler.tenant. It places rows; it is not a wall.
BEGIN
    RETURN coalesce(nullif(current_setting('reconciler.tenant', true), ''), 'default');
END $$;
