CREATE OR REPLACE FUNCTION reconciler.plan_ignore(e reconciler.effects) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The effect is none of ours.
BEGIN
    RETURN coalesce(reconciler.not_adoptable(e, NULL), '{}');
END $$;
