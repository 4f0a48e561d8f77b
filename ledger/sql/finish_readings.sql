-- Ends readings that were answered, ends the doubt about effects that are gone, and plans
-- what was not answered.
-- $1 tenant  $2 answered  $3 those of them that are gone  $4 unanswered
WITH ended AS (
    DELETE FROM reconciler.wanted w
    USING json_to_recordset($2::json) AS r (source text, kind text, account text, mode text, effect_id text,
        parent text, since timestamptz)
    WHERE w.tenant = $1 AND w.source = r.source AND w.kind = r.kind AND w.account = r.account AND w.mode = r.mode
        AND w.effect_id = r.effect_id AND w.parent = r.parent AND w.since <= r.since
),
sure AS (
    UPDATE reconciler.effects e SET needs_read = false
    FROM json_to_recordset($3::json) AS r (source text, account text, mode text, effect_id text)
    WHERE e.tenant = $1 AND e.id = r.effect_id AND e.source = r.source AND e.account = r.account AND e.mode = r.mode
        AND e.needs_read
)
INSERT INTO reconciler.wanted AS w (tenant, source, kind, account, mode, effect_id, parent, made_from, since, attempts,
    next_try)
SELECT $1, r.source, r.kind, r.account, r.mode, r.effect_id, r.parent, r.made_from, r.since, r.attempts + 1, r.next_try
FROM json_to_recordset($4::json) AS r (source text, kind text, account text, mode text, effect_id text, parent text,
    made_from timestamptz, since timestamptz, attempts integer, next_try timestamptz)
ON CONFLICT (tenant, source, kind, account, mode, effect_id, parent) DO UPDATE
    SET attempts = excluded.attempts, next_try = excluded.next_try
    WHERE w.since <= excluded.since
