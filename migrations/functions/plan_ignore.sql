CREATE OR REPLACE FUNCTION reconciler.plan_ignore(e reconciler.effects) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- The effect is none of ours. Nothing of it changes: that the finding was settled so is
-- what says it, to every later audit.
BEGIN
    RETURN coalesce(reconciler.not_adoptable(e, NULL), '{}');
END $$;
