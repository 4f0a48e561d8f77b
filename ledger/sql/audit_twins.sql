-- Operations that may be one intent done twice: same action, target and amount, and close
-- in time, of one tool call, or of one natural reference. Rules say which are suspected.
-- Those of one intent stand together, in the order of their creation. Most windows have
-- none, so that nothing is kept of an operation before its intent is known to come again.
-- $1 tenant  $2 source  $3 from  $4 to  $5 how close
WITH seen AS NOT MATERIALIZED (
    SELECT o.*, hashtextextended(o.target, hashtextextended(o.action, coalesce(o.amount, 0))) AS intent
    FROM reconciler.operations o
    WHERE o.tenant = $1 AND o.source = $2 AND o.created_at >= $3::timestamptz - $5::interval AND o.created_at < $4::timestamptz + $5::interval
),
again AS MATERIALIZED (SELECT s.intent FROM seen s GROUP BY s.intent HAVING count(*) > 1),
few AS MATERIALIZED (
    SELECT s.intent, s.created_at, s.operation_id, s.run, s.tool_call
    FROM again a
    JOIN seen s ON s.intent = a.intent
),
near AS (
    SELECT f.intent, f.created_at, f.operation_id, f.created_at - lag(f.created_at) OVER w <= $5::interval
        OR lead(f.created_at) OVER w - f.created_at <= $5::interval AS close
    FROM few f
    WINDOW w AS (PARTITION BY f.intent ORDER BY f.created_at, f.operation_id)
),
calls AS (
    SELECT f.intent, f.run, f.tool_call FROM few f
    WHERE f.run IS NOT NULL AND f.tool_call IS NOT NULL
    GROUP BY f.intent, f.run, f.tool_call
    HAVING count(*) > 1
),
named AS (
    SELECT s.intent, s.created_at, s.operation_id, x.operation_id AS other, x.created_at AS other_at
    FROM seen s
    JOIN reconciler.operations x ON x.tenant = $1 AND x.reference = s.reference AND x.operation_id <> s.operation_id
        AND x.action = s.action AND x.target = s.target AND x.amount IS NOT DISTINCT FROM s.amount
    WHERE s.reference IS NOT NULL
    UNION
    -- Written in another way, with something left that all ways share.
    SELECT s.intent, s.created_at, s.operation_id, x.operation_id, x.created_at
    FROM (
        SELECT s.*, regexp_replace(lower(normalize(s.reference, NFKC) COLLATE "C"), '[^a-z1-9]', '', 'g') AS folded
        FROM seen s
        WHERE s.reference IS NOT NULL
    ) s
    JOIN reconciler.operations x ON x.tenant = $1 AND x.reference IS NOT NULL
        AND regexp_replace(lower(normalize(x.reference, NFKC) COLLATE "C"), '[^a-z1-9]', '', 'g') = s.folded AND x.operation_id <> s.operation_id
        AND x.action = s.action AND x.target = s.target AND x.amount IS NOT DISTINCT FROM s.amount
    WHERE s.folded <> ''
)
SELECT n.intent, n.created_at, n.operation_id FROM near n WHERE n.close
UNION
SELECT f.intent, f.created_at, f.operation_id
FROM few f JOIN calls c ON c.intent = f.intent AND c.run = f.run AND c.tool_call = f.tool_call
UNION
SELECT n.intent, n.created_at, n.operation_id FROM named n
UNION
SELECT n.intent, n.other_at, n.other FROM named n
ORDER BY 1, 2, 3
