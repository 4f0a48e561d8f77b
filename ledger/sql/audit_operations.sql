-- The operations of a window that have to be judged, in the order of their ids, behind
-- one row that counts. The others have one completed effect that is equal in all that
-- both sides show, and no open finding: no rule has anything to say about them.
-- $1 tenant  $2 source  $3 from  $4 to  $5 after which id  $6 most  $7 every one is to be judged
WITH told AS MATERIALIZED (
    SELECT DISTINCT t.operation_id
    FROM reconciler.findings f, unnest(f.operation_ids) AS t (operation_id)
    WHERE f.tenant = $1 AND f.source = $2 AND f.state NOT IN ('settled', 'ended')
),
-- A row for each pair, and one for each operation without effect.
pairs AS MATERIALIZED (
    SELECT o.operation_id,
        coalesce(o.state = 'succeeded' AND e.status = 'completed' AND NOT e.needs_read AND e.id = o.effect_id
            AND e.account = o.account AND e.mode = o.mode
            AND e.amount IS NOT DISTINCT FROM o.amount AND e.currency IS NOT DISTINCT FROM o.currency
            AND (o.parent IS NULL OR e.parent IS NULL OR e.parent = o.parent OR o.parent = ANY (e.other_parents))
            AND (e.target IS NULL OR e.target = o.target) AND (e.key IS NULL OR e.key = o.key)
            AND (e.reference IS NULL OR btrim(e.reference) = o.operation_id), false)
            AND o.operation_id NOT IN (SELECT t.operation_id FROM told t) AND NOT $7::boolean AS plain,
        coalesce(e.source = $2 AND e.created_at >= $3 AND e.created_at < $4, false) AS counts
    FROM reconciler.operations o
    LEFT JOIN reconciler.effects e ON e.tenant = $1 AND e.owner = o.operation_id
    WHERE o.tenant = $1 AND o.source = $2 AND o.created_at >= $3 AND o.created_at < $4
),
odd AS MATERIALIZED (SELECT DISTINCT p.operation_id FROM pairs p WHERE NOT p.plain)
SELECT NULL AS operation_id, count(*) FILTER (WHERE s.plain) AS plain,
    count(*) FILTER (WHERE s.plain AND s.counts) AS plain_effects, count(*) FILTER (WHERE s.counts) AS effects
FROM (SELECT p.plain AND p.operation_id NOT IN (SELECT d.operation_id FROM odd d) AS plain, p.counts FROM pairs p) s
UNION ALL
SELECT * FROM (
    SELECT d.operation_id, 0, 0, 0 FROM odd d WHERE d.operation_id > $5::text ORDER BY d.operation_id LIMIT $6
) d
