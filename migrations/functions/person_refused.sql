CREATE OR REPLACE FUNCTION reconciler.person_refused(f reconciler.findings, person text, reason text, next text)
RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN reconciler.person_answer('refused', f, person, jsonb_build_object('reason', reason, 'next', next));
END $$;
