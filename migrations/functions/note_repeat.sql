CREATE OR REPLACE FUNCTION reconciler.note_repeat(op reconciler.operations, answer jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- Counts a claim that was refused because it could have done something twice. One whose
-- time only has not come yet, or whose operation is closed as failed, is no such repeat.
DECLARE
    now timestamptz := reconciler.clock();
    reason text := CASE
        WHEN answer ->> 'state' = 'failed' THEN NULL
        WHEN answer ->> 'state' IN ('succeeded', 'in_progress') THEN answer ->> 'state'
        WHEN answer ->> 'reason' LIKE '%key lifetime is over%' THEN 'key_expired'
        WHEN answer ->> 'reason' = 'its back-off is not over' THEN NULL
        WHEN answer ->> 'state' IN ('unknown', 'manual_review') OR op.in_doubt THEN 'in_doubt'
    END;
BEGIN
    IF reason IS NOT NULL THEN
        INSERT INTO reconciler.repeats (tenant, reason, at) VALUES (op.tenant, reason, now);
    END IF;
END $$;
