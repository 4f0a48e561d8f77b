CREATE OR REPLACE FUNCTION reconciler.receive_events(my_tenant text, systems text[], accounts text[], modes text[], ids text[],
    sources text[], types text[], states text[], blobs text[], signatures boolean[], counts integer[], made timestamptz[],
    came timestamptz[], hashes bytea[], salts bytea[], bodies bytea[])
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- Stores events that arrived, counts those that are known, and gives back the blobs that
-- were taken. A signed event replaces one of the same name that nobody signed, body
-- and all: a forged body must not be vouched for by a later signature.
-- It is a function because each connection keeps the plan of a function's statement, also
-- behind a pooler; making the plan takes as long as storing ten events.
BEGIN
    PERFORM reconciler.commit_surely(); -- for this is what acknowledges an event
    RETURN QUERY WITH input AS (
        SELECT r.*
        FROM unnest(systems, accounts, modes, ids, sources, types, states, blobs,
            signatures, counts, made, came, hashes, salts, bodies)
            AS r (system, account, mode, id, source, type, state, blob_id, signed, deliveries, created_at, received_at,
                body_hash, salt, bytes)
    ),
    arrived AS (
        INSERT INTO reconciler.events AS e (tenant, system, account, mode, id, source, type, signed, created_at,
            received_at, last_received_at, deliveries, state, next_try, blob_id, body_hash)
        SELECT my_tenant, i.system, i.account, i.mode, i.id, i.source, i.type, i.signed, i.created_at,
            i.received_at, i.received_at, i.deliveries, i.state, i.received_at, i.blob_id, i.body_hash
        FROM input i
        ON CONFLICT (tenant, system, account, mode, id) DO UPDATE
            SET deliveries = e.deliveries + excluded.deliveries,
                last_received_at = excluded.last_received_at,
                signed = e.signed OR excluded.signed,
                source = CASE WHEN excluded.signed > e.signed THEN excluded.source ELSE e.source END,
                type = CASE WHEN excluded.signed > e.signed THEN excluded.type ELSE e.type END,
                created_at = CASE WHEN excluded.signed > e.signed THEN excluded.created_at ELSE e.created_at END,
                state = CASE WHEN excluded.signed > e.signed THEN excluded.state ELSE e.state END,
                attempts = CASE WHEN excluded.signed > e.signed THEN 0 ELSE e.attempts END,
                next_try = CASE WHEN excluded.signed > e.signed THEN excluded.next_try ELSE e.next_try END,
                blob_id = CASE WHEN excluded.signed > e.signed THEN excluded.blob_id ELSE e.blob_id END,
                body_hash = CASE WHEN excluded.signed > e.signed THEN excluded.body_hash ELSE e.body_hash END
        RETURNING blob_id
    ),
    kept AS (
        INSERT INTO reconciler.blobs (tenant, id, salt, bytes)
        SELECT my_tenant, i.blob_id, i.salt, i.bytes FROM arrived a JOIN input i ON i.blob_id = a.blob_id
        RETURNING id
    )
    SELECT k.id FROM kept k;
END $$;
