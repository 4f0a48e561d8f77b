CREATE OR REPLACE FUNCTION reconciler.finish_attempt(input jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- Takes what came of an attempt. Only the holder of the live lease changes anything.
DECLARE
    asked record;
    op reconciler.operations;
    my_tenant text;
    now timestamptz;
BEGIN
    PERFORM reconciler.begin_acting();
    asked := reconciler.read_finish(input);
    my_tenant := reconciler.current_tenant();
    SELECT * INTO op FROM reconciler.operations o
        WHERE o.tenant = my_tenant AND o.operation_id = asked.operation_id FOR NO KEY UPDATE;
    IF op.operation_id IS NULL THEN
        PERFORM reconciler.refuse_input(
            format('finish_attempt: there is no operation "%s"', left(asked.operation_id, 100)),
            'Give the operation_id that claim_operation answered.');
    END IF;
    now := reconciler.clock(); -- after the lock, for which it may have waited past the lease
    IF op.state = 'in_progress' AND op.lease_token = asked.token AND op.lease_until > now THEN
        RETURN reconciler.finish_live(op, asked, now);
    END IF;
    RETURN reconciler.finish_stale(op, asked, now);
END $$;
