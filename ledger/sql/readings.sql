-- What is to be read at a source: objects that an event told of, and effects whose
-- tellings disagree, those for which a reading was not answered when it is time again.
-- $1 tenant  $2 source  $3 now  $4 at most
SELECT r.kind, r.account, r.mode, r.effect_id, r.parent, r.made_from, r.since, r.attempts
FROM (
    (SELECT w.kind, w.account, w.mode, w.effect_id, w.parent, w.made_from, w.since, w.attempts, w.next_try
    FROM reconciler.wanted w
    WHERE w.tenant = $1 AND w.source = $2 AND w.next_try <= $3
    ORDER BY w.next_try
    LIMIT $4)
    UNION ALL
    (SELECT e.kind, e.account, e.mode, e.id, '', e.created_at, NULL, 0, e.seen_at
    FROM reconciler.effects e
    WHERE e.tenant = $1 AND e.source = $2 AND e.needs_read
        AND NOT EXISTS (SELECT FROM reconciler.wanted w
            WHERE w.tenant = $1 AND w.source = $2 AND w.kind = e.kind AND w.account = e.account AND w.mode = e.mode
                AND w.effect_id = e.id AND w.parent = '')
    LIMIT $4)
) r
ORDER BY r.next_try, r.kind, r.account, r.mode, r.effect_id, r.parent
LIMIT $4
