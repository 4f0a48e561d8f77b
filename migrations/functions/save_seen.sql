CREATE OR REPLACE FUNCTION reconciler.save_seen(my_tenant text, look jsonb, effect jsonb, now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- Keeps what a look for one effect by its id brought, and who made it: on the command line
-- it is the person's own process that asks. What was read just now replaces what was
-- observed earlier, and a change of it is kept. It is merged as a sweep's read is: no object
-- shows the key that it was made with, which only the feed tells, and a report alone may tell
-- the fees, which stay what they were while the amount does.
DECLARE
    k reconciler.looks := jsonb_populate_record(NULL::reconciler.looks, look - 'reply_hash');
    e reconciler.effects := jsonb_populate_record(NULL::reconciler.effects, effect);
    old reconciler.effects;
    same_money boolean;
BEGIN
    IF k.method IS DISTINCT FROM 'by_id' OR k.look_id IS NULL OR k.at > now + interval '5 minutes' OR k.at < now - interval '15 minutes' THEN
        PERFORM reconciler.refuse_input('approve: "look" must be a look by_id of the last 15 minutes', 'Look the effect up now.');
    END IF;
    INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, kind, account, mode, effect_id, at, complete,
            calls, request_id, reply_hash, fault, detail, found)
        VALUES (my_tenant, k.look_id, k.source, k.method, k.outcome, k.kind, k.account, k.mode, k.effect_id, k.at, k.complete,
            k.calls, k.request_id, decode(look ->> 'reply_hash', 'base64'), k.fault, concat_ws('; ', k.detail, 'asked for by ' || session_user), coalesce(k.found, '[]'))
        ON CONFLICT DO NOTHING;
    IF e.id IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO old FROM reconciler.effects x WHERE x.tenant = my_tenant AND x.system = e.system
        AND x.account = e.account AND x.mode = e.mode AND x.id = e.id FOR UPDATE;
    IF old.status <> e.status OR old.amount IS DISTINCT FROM e.amount OR old.currency IS DISTINCT FROM e.currency THEN
        INSERT INTO reconciler.effect_changes (tenant, system, account, mode, id, change_id, at, before, after, look_id)
            SELECT my_tenant, e.system, e.account, e.mode, e.id, k.look_id, now,
                jsonb_build_object('status', old.status, 'amount', old.amount, 'currency', old.currency),
                jsonb_build_object('status', e.status, 'amount', e.amount, 'currency', e.currency), k.look_id
            WHERE old.id IS NOT NULL
            ON CONFLICT DO NOTHING;
    END IF;
    same_money := old.amount IS NOT DISTINCT FROM e.amount AND old.currency IS NOT DISTINCT FROM upper(e.currency);
    INSERT INTO reconciler.effects AS x (tenant, system, account, mode, id, source, kind, status, amount, currency, parent,
            other_parents, target, reference, natural_reference, key, created_at, updated_at, fee, net, settlement_amount,
            settlement_currency, created_by, failure_reason, caused_by, parent_total, metadata, first_seen_at, seen_at, look_id)
        VALUES (my_tenant, e.system, e.account, e.mode, e.id, e.source, e.kind, e.status, e.amount, upper(e.currency), e.parent,
            coalesce(e.other_parents, '{}'), e.target, e.reference, e.natural_reference, e.key, e.created_at, e.updated_at, e.fee,
            e.net, e.settlement_amount, e.settlement_currency, e.created_by, e.failure_reason, e.caused_by, e.parent_total,
            e.metadata, k.at, k.at, k.look_id)
        ON CONFLICT (tenant, system, account, mode, id) DO UPDATE
        SET status = excluded.status, amount = excluded.amount, currency = excluded.currency, parent = excluded.parent,
            other_parents = excluded.other_parents, target = excluded.target, reference = excluded.reference,
            natural_reference = excluded.natural_reference, key = coalesce(excluded.key, x.key),
            created_at = excluded.created_at, updated_at = excluded.updated_at,
            fee = coalesce(excluded.fee, CASE WHEN same_money THEN x.fee END),
            net = coalesce(excluded.net, CASE WHEN same_money THEN x.net END),
            settlement_amount = coalesce(excluded.settlement_amount, CASE WHEN same_money THEN x.settlement_amount END),
            settlement_currency = coalesce(excluded.settlement_currency, CASE WHEN same_money THEN x.settlement_currency END),
            created_by = excluded.created_by, failure_reason = excluded.failure_reason, caused_by = excluded.caused_by,
            parent_total = excluded.parent_total, metadata = excluded.metadata,
            needs_read = false, seen_at = excluded.seen_at, look_id = excluded.look_id
        WHERE x.seen_at <= excluded.seen_at;
END $$;
