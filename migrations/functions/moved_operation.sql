CREATE OR REPLACE FUNCTION reconciler.moved_operation(op reconciler.operations, release boolean, now timestamptz)
RETURNS reconciler.operations
LANGUAGE plpgsql STABLE AS $$
-- What else changes with an operation's state.
DECLARE
    closed boolean := op.state IN ('succeeded', 'failed');
BEGIN
    op.closed_at := CASE WHEN closed THEN now END;
    op.unknown_since := CASE op.state WHEN 'pending' THEN NULL WHEN 'unknown' THEN coalesce(op.unknown_since, now)
        ELSE op.unknown_since END;
    op.released := release OR op.released AND op.state IN ('pending', 'unknown');
    op.retry_at := CASE WHEN NOT closed AND NOT release THEN op.retry_at END;
    op.slot := CASE WHEN closed THEN NULL
        WHEN release AND (reconciler.policy_of(op) -> 'one_open')::boolean THEN reconciler.intent_slot(op)
        ELSE op.slot END;
    RETURN op;
END $$;
