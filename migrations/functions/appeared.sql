CREATE OR REPLACE FUNCTION reconciler.appeared(my_tenant text, since timestamptz, most integer) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = reconciler, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_custom_plan SET jit = off AS $$
-- Operations that were opened or finished lately and that an effect without owner names,
-- and those whose sender ended them otherwise than an effect says that was seen before.
-- It is asked twice a second, also in the first minute of a ledger, of which the planner
-- knows nothing. As a function it has settings of its own, under which it is planned for
-- what the tables hold now, and right whatever is known of them: what moved is read by its
-- time, and each operation of it is looked up by index. Each look-up of an effect ends
-- with its first row, since EXISTS may be planned as one table of all effects, and says
-- "no owner" so that the index of all effects without owner does not serve it.
BEGIN
    RETURN QUERY SELECT o.operation_id
    FROM (
        SELECT t.operation_id, min(t.at) AS at
        FROM (
            SELECT j.operation_id, j.at FROM journal j
            WHERE j.tenant = my_tenant AND j.at >= since AND j.kind IN ('opened', 'attempt_finished')
            OFFSET 0
        ) t
        GROUP BY t.operation_id
    ) m
    CROSS JOIN LATERAL (
        SELECT p.operation_id, p."group", p.key, p.effect_id, p.state, p.amount, p.currency, p.parent
        FROM operations p WHERE p.tenant = my_tenant AND p.operation_id = m.operation_id OFFSET 0
    ) o
    WHERE (SELECT 1 FROM effects e WHERE e.tenant = my_tenant AND e.reference = ANY (ARRAY[o.operation_id, o."group"])
            AND coalesce(e.owner, '') = '' LIMIT 1) = 1
        OR (SELECT 1 FROM effects e WHERE e.tenant = my_tenant AND e.key = o.key AND coalesce(e.owner, '') = '' LIMIT 1) = 1
        OR (SELECT 1 FROM effects e WHERE e.tenant = my_tenant AND e.id = o.effect_id AND coalesce(e.owner, '') = '' LIMIT 1) = 1
        OR o.state IN ('succeeded', 'failed') AND (SELECT 1 FROM effects e
            WHERE e.tenant = my_tenant AND e.owner = o.operation_id AND CASE o.state
                WHEN 'failed' THEN e.status IN ('in_flight', 'completed')
                ELSE e.status <> 'completed' OR e.amount <> o.amount OR e.currency <> o.currency
                    OR o.parent <> ALL (e.other_parents || e.parent) END
            LIMIT 1) = 1
    ORDER BY m.at, o.operation_id
    LIMIT most;
END $$;
