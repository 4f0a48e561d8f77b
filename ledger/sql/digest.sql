-- Findings by kind: those that are open, and what changed lately.
-- $1 tenant  $2 since when a change is told
WITH standing AS (
    SELECT f.kind, f.state NOT IN ('settled', 'ended') AS open, f.assignee, f.opened_at,
        coalesce(f.ended_at, f.settled_at) AS over_at, f.amount, f.currency
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.state NOT IN ('settled', 'ended')
    UNION ALL
    SELECT f.kind, false, f.assignee, f.opened_at, coalesce(f.ended_at, f.settled_at), NULL, NULL
    FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.state IN ('settled', 'ended') AND coalesce(f.ended_at, f.settled_at) > $2
),
-- One sum per kind and currency.
money AS (
    SELECT s.kind, json_agg(json_build_object('Currency', s.currency, 'Minor', s.minor) ORDER BY s.currency) AS sums
    FROM (SELECT x.kind, x.currency, sum(x.amount)::bigint AS minor FROM standing x
        WHERE x.open AND x.currency IS NOT NULL GROUP BY x.kind, x.currency) s
    GROUP BY s.kind
)
SELECT s.kind, count(*) FILTER (WHERE s.open), count(*) FILTER (WHERE s.open AND s.assignee IS NOT NULL),
    min(s.opened_at) FILTER (WHERE s.open), coalesce(min(m.sums::text), '[]')::json,
    count(*) FILTER (WHERE s.opened_at > $2), count(*) FILTER (WHERE NOT s.open)
FROM standing s
LEFT JOIN money m ON m.kind = s.kind
GROUP BY s.kind
ORDER BY s.kind
