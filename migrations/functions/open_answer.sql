CREATE OR REPLACE FUNCTION reconciler.open_answer(op reconciler.operations, verdict text, reason text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- How the operation stands for whoever opened it. The caller must not send unless it
-- claims; a stored result spares it that.
BEGIN
    RETURN jsonb_build_object(
            'operation_id', op.operation_id, 'key', op.key, 'state', op.state,
            'verdict', verdict, 'already', reconciler.already(op))
        || jsonb_strip_nulls(jsonb_build_object('reason', reason))
        || CASE WHEN op.result IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('result', op.result) END;
END $$;
