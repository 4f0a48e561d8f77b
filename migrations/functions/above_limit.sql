CREATE OR REPLACE FUNCTION reconciler.above_limit(f reconciler.findings, op reconciler.operations, e reconciler.effects)
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether an amount that is decided on is one for two people.
DECLARE
    limits jsonb;
BEGIN
    SELECT p.body -> 'approve_above' INTO limits FROM reconciler.people p WHERE p.tenant = f.tenant;
    RETURN EXISTS (
        SELECT 1 FROM (
            VALUES (f.amount, f.currency), (op.amount, op.currency), (e.amount, e.currency)) AS v (amount, currency)
        WHERE v.amount > (limits ->> v.currency)::bigint)
        OR EXISTS (SELECT 1 FROM reconciler.operations o
            WHERE o.tenant = f.tenant AND o.operation_id = ANY (f.operation_ids)
                AND o.amount > (limits ->> o.currency)::bigint);
END $$;
