CREATE OR REPLACE FUNCTION reconciler.refusal(reason text, next text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_build_object('refusal', reason, 'next', next);
END $$;
