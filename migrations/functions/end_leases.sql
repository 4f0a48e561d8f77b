CREATE OR REPLACE FUNCTION reconciler.end_leases(my_tenant text, ids text[], now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- A lease that is over is no call under way: such operations are unknown before anybody
-- judges them. The rows are locked by the caller.
DECLARE
    op reconciler.operations;
BEGIN
    FOR op IN SELECT * FROM reconciler.operations o
        WHERE o.tenant = my_tenant AND o.operation_id = ANY (ids) AND o.state = 'in_progress' AND o.lease_until <= now
        ORDER BY o.operation_id
    LOOP
        PERFORM reconciler.expire_lease(op, now);
    END LOOP;
END $$;
