-- Appends evidence. $1 tenant  $2 run  $3 looks  $4 coverage
-- DO NOTHING, since DO UPDATE would fire the triggers that keep evidence unchanged.
WITH looks AS (
    INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, kind, account, mode, effect_id, key,
        reference, parent, window_from, window_to, at, complete, calls, request_id, reply_hash, fault, detail, found,
        run_id)
    SELECT $1, r.look_id, r.source, r.method, r.outcome, r.kind, r.account, r.mode, r.effect_id, r.key,
        r.reference, r.parent, r.window_from, r.window_to, r.at, r.complete, r.calls, r.request_id,
        decode(r.reply_hash, 'base64'), r.fault, r.detail, r.found, nullif($2::text, '')
    FROM json_to_recordset($3::json) AS r (look_id text, source text, method text, outcome text, kind text,
        account text, mode text, effect_id text, key text, reference text, parent text, window_from timestamptz,
        window_to timestamptz, at timestamptz, complete boolean, calls integer, request_id text, reply_hash text,
        fault text, detail text, found jsonb)
    ON CONFLICT (tenant, look_id) DO NOTHING
)
INSERT INTO reconciler.coverage (tenant, look_id, source, kind, account, mode, window_from, window_to, at)
SELECT $1, r.look_id, r.source, r.kind, r.account, r.mode, r.window_from, r.window_to, r.at
FROM json_to_recordset($4::json) AS r (look_id text, source text, kind text, account text, mode text,
    window_from timestamptz, window_to timestamptz, at timestamptz)
ON CONFLICT (tenant, look_id, kind, account, mode) DO NOTHING
