CREATE OR REPLACE FUNCTION reconciler.plan_after_person(op reconciler.operations, now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- When the operation is looked at next. One that was closed while other findings on it are
-- open is looked at at once, which ends what no longer holds. What looks did not find
-- before a release says nothing about what is sent after it.
DECLARE
    policy jsonb := reconciler.policy_of(op);
    closes boolean := op.state IN ('succeeded', 'failed');
    told boolean := closes AND EXISTS (SELECT 1 FROM reconciler.findings f
        WHERE f.tenant = op.tenant AND f.operation_ids && ARRAY[op.operation_id] AND f.state NOT IN ('settled', 'ended'));
    due timestamptz := CASE
        WHEN told THEN now
        WHEN closes THEN reconciler.first_reverification(op.operation_id, now)
        WHEN op.state = 'pending' THEN now + coalesce((policy ->> 'stale_pending')::interval, interval '15 minutes')
        ELSE now END;
    released boolean := op.state = 'pending' AND op.released;
BEGIN
    INSERT INTO reconciler.checks AS c (tenant, operation_id, source, closed, next_check)
        VALUES (op.tenant, op.operation_id, op.source, closes AND NOT told, due)
        ON CONFLICT (tenant, operation_id) DO UPDATE
        SET closed = excluded.closed, next_check = excluded.next_check, rung = 0,
            absent_looks = CASE WHEN released THEN 0 ELSE c.absent_looks END,
            absent_first = CASE WHEN released THEN NULL ELSE c.absent_first END,
            absent_last = CASE WHEN released THEN now ELSE c.absent_last END,
            absent_look_ids = CASE WHEN released THEN '{}' ELSE c.absent_look_ids END;
END $$;
