CREATE OR REPLACE FUNCTION reconciler.reject_opening(reason text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN jsonb_build_object('operation_id', NULL, 'key', NULL, 'state', NULL,
        'verdict', 'rejected', 'already', NULL, 'reason', reason);
END $$;
