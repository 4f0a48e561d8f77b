CREATE OR REPLACE FUNCTION reconciler.verdict_of(state text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- What the caller may tell its own caller while it holds no lease.
BEGIN
    RETURN CASE
        WHEN state IS NULL THEN jsonb_build_object('verdict', NULL, 'final', false) -- no operation at all
        WHEN state = 'succeeded' THEN jsonb_build_object('verdict', 'succeeded', 'final', true)
        WHEN state = 'failed' THEN jsonb_build_object('verdict', 'failed_safe_to_retry', 'final', true)
        WHEN state = 'pending' THEN jsonb_build_object('verdict', 'failed_safe_to_retry', 'final', false)
        ELSE jsonb_build_object('verdict', 'unknown_reconciliation_required', 'final', false,
            'note', 'The outcome is being checked. Report neither success nor failure.')
    END;
END $$;
