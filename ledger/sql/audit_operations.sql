-- The next operations of a window by the time of their creation, and which of them have
-- to be judged. The others have one completed effect that is equal in all that both sides
-- show, and no open finding: no rule has anything to say about them.
-- $1 tenant  $2 source  $3 from  $4 to  $5 $6 after (created_at, operation_id)  $7 most  $8 every one is to be judged
WITH chunk AS MATERIALIZED (
    SELECT o.operation_id, o.created_at, o.state, o.effect_id, o.account, o.mode, o.amount, o.currency, o.parent,
        o.target, o.key
    FROM reconciler.operations o
    WHERE o.tenant = $1 AND o.source = $2 AND o.created_at >= $3 AND o.created_at < $4
        AND (o.created_at, o.operation_id) > ($5::timestamptz, $6::text)
    ORDER BY o.created_at, o.operation_id
    LIMIT $7
),
told AS MATERIALIZED (
    SELECT DISTINCT t.operation_id
    FROM reconciler.findings f, unnest(f.operation_ids) AS t (operation_id)
    WHERE f.tenant = $1 AND f.source = $2 AND f.state NOT IN ('settled', 'ended')
),
sorted AS MATERIALIZED (
    SELECT c.operation_id,
        c.state = 'succeeded' AND count(e.id) = 1
            AND bool_and(coalesce(e.status = 'completed' AND NOT e.needs_read AND e.id = c.effect_id
                AND e.account = c.account AND e.mode = c.mode
                AND e.amount IS NOT DISTINCT FROM c.amount AND e.currency IS NOT DISTINCT FROM c.currency
                AND (c.parent IS NULL OR e.parent IS NULL OR e.parent = c.parent OR c.parent = ANY (e.other_parents))
                AND (e.target IS NULL OR e.target = c.target) AND (e.key IS NULL OR e.key = c.key)
                AND (e.reference IS NULL OR btrim(e.reference) = c.operation_id), false))
            AND c.operation_id NOT IN (SELECT t.operation_id FROM told t) AND NOT $8::boolean AS plain,
        count(e.id) FILTER (WHERE e.source = $2 AND e.created_at >= $3 AND e.created_at < $4) AS effects
    FROM chunk c
    LEFT JOIN reconciler.effects e ON e.tenant = $1 AND e.owner = c.operation_id
    GROUP BY c.operation_id, c.created_at, c.state
)
SELECT (SELECT count(*) FROM chunk), (SELECT count(*) FROM sorted s WHERE s.plain),
    (SELECT coalesce(sum(s.effects), 0)::bigint FROM sorted s WHERE s.plain),
    (SELECT coalesce(sum(s.effects), 0)::bigint FROM sorted s),
    (SELECT coalesce(array_agg(s.operation_id ORDER BY s.operation_id), '{}') FROM sorted s WHERE NOT s.plain),
    l.created_at, l.operation_id
FROM (SELECT c.created_at, c.operation_id FROM chunk c ORDER BY c.created_at DESC, c.operation_id DESC LIMIT 1) l
