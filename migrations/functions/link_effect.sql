CREATE OR REPLACE FUNCTION reconciler.link_effect(
    op reconciler.operations, identity jsonb, seen_by text, now timestamptz)
RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- Gives an effect to an operation. It is locked by the caller, who made sure that it is
-- nobody else's.
BEGIN
    UPDATE reconciler.effects e SET owner = op.operation_id
        WHERE e.tenant = op.tenant AND e.system = identity ->> 'system' AND e.account = identity ->> 'account'
            AND e.mode = identity ->> 'mode' AND e.id = identity ->> 'id' AND (op."group" IS NULL OR e.owner IS DISTINCT FROM op."group");
    IF FOUND THEN
        INSERT INTO reconciler.matches (tenant, system, account, mode, effect_id, operation_id, basis, certainty, role, look_id, at)
            VALUES (op.tenant, identity ->> 'system', identity ->> 'account', identity ->> 'mode', identity ->> 'id',
                op.operation_id, 'person', 'proof', 'main', seen_by, now)
            ON CONFLICT DO NOTHING;
    END IF;
END $$;
