-- Incidents to plan, with what stands behind them.
-- $1 tenant  $2 now  $3 limit  $4 id of the only one that is wanted, due or not; null: those due
-- $5 how many members are named  $6 blind answers that make a source down
WITH wanted AS (
    SELECT i.*
    FROM reconciler.incidents i
    WHERE i.tenant = $1 AND ($4::text IS NULL AND i.plan_at <= $2 OR i.incident_id = $4)
    ORDER BY i.plan_at, i.incident_id
    LIMIT $3
)
SELECT i.incident_id, i.source, i.kind, i.opened_at, i.joined_at, i.full_at, i.ended_at, i.up_since, i.shown, i.plan_at,
    CASE WHEN s.blinds >= $6 THEN s.blind_since END,
    coalesce(i.total, m.total, 0), coalesce(i.left_open, m.open, 0), coalesce(m.succeeded, 0), m.oldest, m.key_expires, coalesce(m.actions, '{}'),
    coalesce(m.money, '[]'), coalesce(m.top, '[]'), coalesce(t.told, '[]'), b.reason
FROM wanted i
LEFT JOIN reconciler.source_state s ON s.tenant = $1 AND s.source = i.source
LEFT JOIN LATERAL (
    SELECT f.reason FROM reconciler.findings f
    WHERE f.tenant = $1 AND f.incident_id = i.incident_id AND f.kind = i.kind AND f.operation_ids = '{}'
    ORDER BY f.opened_at DESC, f.finding_id LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT json_agg(json_build_object('Step', n.step, 'Destination', n.destination) ORDER BY n.planned_at, n.notice_id) AS told
    FROM reconciler.notices n
    WHERE n.tenant = $1 AND n.subject = i.incident_id AND n.act = 'tell'
) t ON true
LEFT JOIN LATERAL (
    WITH member AS MATERIALIZED (
        SELECT f.finding_id, f.state NOT IN ('settled', 'ended') AS open, f.amount, f.currency,
            o.operation_id, o.action, o.target, o.state AS state,
            coalesce(o.unknown_since, f.opened_at) AS since,
            -- A repeat is safe until the margin before the key expires, and no longer.
            CASE WHEN o.state NOT IN ('succeeded', 'failed') THEN
                o.key_expires_at - coalesce((y.body ->> 'key_margin')::interval, interval '30 minutes') END AS key_expires
        FROM reconciler.findings f
        LEFT JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = f.operation_ids[1]
        LEFT JOIN reconciler.policies y ON y.tenant = $1 AND y.action = o.action AND y.version = o.policy_version
        -- What the source itself is told as is no member of its own incident.
        WHERE f.tenant = $1 AND f.incident_id = i.incident_id AND (f.kind <> i.kind OR f.operation_ids <> '{}' OR f.effect_ids <> '{}')
    )
    SELECT count(*) AS total, count(*) FILTER (WHERE m.open) AS open,
        count(*) FILTER (WHERE NOT m.open AND m.state = 'succeeded') AS succeeded,
        min(m.since) FILTER (WHERE m.open) AS oldest, min(m.key_expires) FILTER (WHERE m.open) AS key_expires,
        array_agg(DISTINCT m.action) FILTER (WHERE m.action IS NOT NULL) AS actions,
        (SELECT json_agg(json_build_object('Currency', c.currency, 'Minor', c.minor) ORDER BY c.currency)
            FROM (SELECT x.currency, sum(x.amount)::bigint AS minor FROM member x
                WHERE x.open AND x.currency IS NOT NULL GROUP BY x.currency) c) AS money,
        (SELECT json_agg(json_build_object('Finding', h.finding_id, 'Operation', coalesce(h.operation_id, ''), 'Target', coalesce(h.target, ''),
                'Money', json_build_object('Minor', coalesce(h.amount, 0), 'Currency', coalesce(h.currency, '')),
                'Since', h.since, 'KeyExpires', coalesce(h.key_expires, '0001-01-01T00:00:00Z')) ORDER BY h.since, h.finding_id)
            FROM (SELECT x.* FROM member x WHERE x.open ORDER BY x.since, x.finding_id LIMIT $5) h) AS top
    FROM member m
) m ON true
ORDER BY i.plan_at, i.incident_id
