CREATE OR REPLACE FUNCTION reconciler.person_refused(f reconciler.findings, person text, reason text, next text)
RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- A refusal says why, and what to do instead.
BEGIN
    RETURN reconciler.person_answer('refused', f, person, jsonb_build_object('reason', reason, 'next', next));
END $$;
