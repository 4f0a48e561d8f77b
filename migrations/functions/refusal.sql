CREATE OR REPLACE FUNCTION reconciler.refusal(reason text, next text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- Why a plan cannot be, and what to do instead; the one shape that approve looks for.
BEGIN
    RETURN jsonb_build_object('refusal', reason, 'next', next);
END $$;
