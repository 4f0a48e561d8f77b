CREATE OR REPLACE FUNCTION reconciler.person_effect(f reconciler.findings, asked record, op reconciler.operations)
RETURNS reconciler.effects
LANGUAGE plpgsql VOLATILE AS $$
-- The stored effect that is meant; a null row where none is stored or none is
-- meant. Account and mode are part of what it is: the same id elsewhere is another thing.
DECLARE
    e reconciler.effects;
    wanted text := asked.effect_id;
    ref jsonb;
BEGIN
    IF wanted IS NULL AND asked.verb = 'happened' THEN
        wanted := op.effect_id;
    END IF;
    IF wanted IS NULL AND cardinality(f.effect_ids) = 1 AND asked.verb IN ('happened', 'adopt', 'ignore') THEN
        wanted := f.effect_ids[1];
    END IF;
    SELECT r.value INTO ref FROM jsonb_array_elements(f.effects) r WHERE r.value ->> 'id' = wanted LIMIT 1;
    SELECT x.* INTO e FROM reconciler.effects x
        WHERE x.tenant = f.tenant AND x.id = wanted AND CASE
            WHEN ref IS NOT NULL THEN x.account = ref ->> 'account' AND x.mode = ref ->> 'mode'
            WHEN op.operation_id IS NOT NULL THEN x.mode = op.mode AND x.account = coalesce(op.account, x.account)
                AND x.system = coalesce(reconciler.policy_of(op) ->> 'system', x.system)
            ELSE x.source = f.source END
        ORDER BY x.source = f.source DESC, x.system, x.account, x.mode LIMIT 1 FOR UPDATE; -- one that only the operation knows is not locked yet
    RETURN e;
END $$;
