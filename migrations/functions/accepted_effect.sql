CREATE OR REPLACE FUNCTION reconciler.accepted_effect(op reconciler.operations) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- The effect with which an operation stands when its difference is accepted: the known
-- one, else the earliest that exists, else the earliest; null where none is linked. One in
-- flight is not done, and accepting a difference does not make it so.
DECLARE
    accepted reconciler.effects;
BEGIN
    SELECT x.* INTO accepted FROM reconciler.effects x
        WHERE x.tenant = op.tenant AND x.owner IN (op.operation_id, op."group")
        ORDER BY x.status <> 'completed', x.status = 'in_flight' DESC, x.id IS DISTINCT FROM op.effect_id, x.created_at, x.id LIMIT 1;
    RETURN CASE WHEN accepted.status <> 'in_flight' THEN accepted.id END;
END $$;
