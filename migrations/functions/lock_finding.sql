CREATE OR REPLACE FUNCTION reconciler.lock_finding(
    me text, my_tenant text, wanted text, also_operation text, also_effect text)
RETURNS reconciler.findings
LANGUAGE plpgsql VOLATILE AS $$
-- Locks the finding's operations, its effects, and one more of each, in the order of their
-- ids, and then the finding, as every writer does. What a finding names never changes.
DECLARE
    f reconciler.findings;
BEGIN
    SELECT * INTO f FROM reconciler.findings x WHERE x.tenant = my_tenant AND x.finding_id = wanted;
    IF f.finding_id IS NULL THEN
        PERFORM reconciler.refuse_input(format('%s: there is no finding "%s"', me, left(wanted, 100)),
            '`reconciler findings list` shows those that are open.');
    END IF;
    PERFORM 1 FROM reconciler.operations o
        WHERE o.tenant = my_tenant AND o.operation_id = ANY (f.operation_ids || also_operation)
        ORDER BY o.operation_id FOR NO KEY UPDATE;
    PERFORM 1 FROM reconciler.effects e
        WHERE e.tenant = my_tenant AND e.id = ANY (f.effect_ids || also_effect)
        ORDER BY e.system, e.account, e.mode, e.id FOR UPDATE;
    SELECT * INTO f FROM reconciler.findings x WHERE x.tenant = my_tenant AND x.finding_id = wanted FOR UPDATE;
    RETURN f;
END $$;
