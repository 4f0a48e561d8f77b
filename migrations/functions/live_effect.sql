CREATE OR REPLACE FUNCTION reconciler.live_effect(op reconciler.operations) RETURNS reconciler.effects
LANGUAGE plpgsql STABLE AS $$
-- The earliest linked effect of an operation that exists or may yet: completed ones first.
-- One of its group counts where a share of it is the operation's.
DECLARE
    e reconciler.effects;
BEGIN
    SELECT x.* INTO e FROM reconciler.effects x
        WHERE x.tenant = op.tenant AND x.status IN ('completed', 'in_flight') AND (x.owner = op.operation_id
            OR x.owner = op."group" AND EXISTS (SELECT 1 FROM reconciler.allocations s
                WHERE s.tenant = op.tenant AND s.operation_id = op.operation_id AND s.system = x.system
                    AND s.account = x.account AND s.mode = x.mode AND s.effect_id = x.id))
        ORDER BY x.status, x.created_at, x.id LIMIT 1;
    RETURN e;
END $$;
