-- Counts what journal entries tell, each of them once.
-- $1 tenant  $2 from this transaction on  $3 before this one; null: all that are there
-- $4 written later than this; null: whenever
WITH entry AS MATERIALIZED (
    SELECT o.source, o.action, j.kind, b.*
    FROM reconciler.journal j
    JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = j.operation_id
    CROSS JOIN LATERAL jsonb_to_record(j.body::jsonb)
        AS b ("from" text, "to" text, rule text, class text, error_code text, "by" text)
    WHERE j.tenant = $1 AND j.tx >= $2::text::xid8 AND ($3::text IS NULL OR j.tx < $3::text::xid8)
        AND ($4::timestamptz IS NULL OR j.at > $4)
        AND j.kind IN ('opened', 'attempt_finished', 'decision', 'person')
),
named AS (
    SELECT e.source, e.action, e.kind, e."from", e."to", e.rule,
        CASE
            WHEN e.kind = 'person' THEN 'person'
            WHEN e.kind = 'opened' THEN 'import'
            WHEN e.kind = 'decision' AND e.rule IN ('lease_over', 'stale_release', 'conflict', 'in_flight') THEN e.rule
            WHEN e.kind = 'decision' THEN 'other'
            WHEN e.error_code ~* 'time_?d?_?out' THEN 'timeout'
            WHEN e.error_code ~* 'reset' THEN 'reset'
            WHEN e.error_code ~* 'no_answer' THEN 'no_answer'
            WHEN e.error_code ~ '(^|_)5\d\d$' THEN '5xx'
            WHEN e.class IN ('accepted', 'stored_error', 'refused', 'not_sent', 'indeterminate') THEN e.class
            ELSE 'other'
        END AS reason,
        CASE
            WHEN e.kind = 'person' OR e.kind = 'opened' AND e."by" <> 'import' THEN 'person'
            WHEN e.kind = 'opened' THEN 'import'
            WHEN e.kind = 'attempt_finished' THEN 'attempt'
            WHEN e.rule = 'never_sent' THEN 'policy'
            ELSE 'evidence'
        END AS "by"
    FROM entry e
),
counted AS (
    SELECT 'operations_opened' AS name, ARRAY[e.source, e.action] AS labels
    FROM named e WHERE e.kind = 'opened'
    UNION ALL
    SELECT 'operations_became_unknown', ARRAY[e.source, e.action, e.reason]
    FROM named e WHERE e."to" = 'unknown' AND e."from" IS DISTINCT FROM 'unknown'
    UNION ALL
    SELECT 'operations_closed', ARRAY[e.source, e.action, e."to", e."by"]
    FROM named e
    WHERE e."to" IN ('succeeded', 'failed') AND coalesce(e."from", '') NOT IN ('succeeded', 'failed')
    UNION ALL
    SELECT 'confirmed_after_timeout', ARRAY[]::text[]
    FROM named e
    WHERE e.kind = 'decision' AND e."to" = 'succeeded' AND e."from" IN ('unknown', 'in_progress', 'manual_review')
    UNION ALL
    SELECT 'reversed_effects', ARRAY[]::text[]
    FROM named e WHERE e.kind = 'decision' AND e.rule = 'reversed' AND e."from" = 'succeeded' AND e."to" = 'manual_review'
)
SELECT c.name, c.labels, count(*) AS n FROM counted c GROUP BY c.name, c.labels
