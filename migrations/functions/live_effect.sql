CREATE OR REPLACE FUNCTION reconciler.live_effect(op reconciler.operations) RETURNS reconciler.effects
LANGUAGE plpgsql STABLE AS $$
-- The earliest linked effect of an operation that exists or may yet: completed ones first.
DECLARE
    e reconciler.effects;
BEGIN
    SELECT x.* INTO e FROM reconciler.effects x
        WHERE x.tenant = op.tenant AND x.owner = op.operation_id AND x.status IN ('completed', 'in_flight')
        ORDER BY x.status, x.created_at, x.id LIMIT 1;
    RETURN e;
END $$;
