CREATE OR REPLACE FUNCTION reconciler.reject_opening(reason text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- Nothing was recorded, so there is nothing to name.
BEGIN
    RETURN jsonb_build_object('operation_id', NULL, 'key', NULL, 'state', NULL,
        'verdict', 'rejected', 'already', NULL, 'reason', reason);
END $$;
