CREATE OR REPLACE FUNCTION reconciler.not_adoptable(e reconciler.effects, by_operation text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Why nobody can adopt or ignore the effect; null when it is free.
BEGIN
    IF e.id IS NULL THEN
        RETURN reconciler.refusal('the finding does not say which effect, or it was never seen',
            'Name one that a sweep or an audit has seen.');
    END IF;
    IF e.owner <> coalesce(by_operation, '') THEN
        RETURN reconciler.refusal(format('%s belongs to operation %s', e.id, e.owner),
            'One effect is one operation''s; settle that operation first.');
    END IF;
    RETURN NULL;
END $$;
