CREATE OR REPLACE FUNCTION reconciler.claim_operation(input jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- Gives one caller the right to send, for the length of a lease, or says how the
-- operation stands.
DECLARE
    asked record;
    op reconciler.operations;
    answer jsonb;
    my_tenant text;
BEGIN
    PERFORM reconciler.begin_acting();
    asked := reconciler.read_claim(input);
    my_tenant := reconciler.current_tenant();
    IF asked.action IS NOT NULL THEN
        RETURN reconciler.claim_by_action(my_tenant, asked.action, asked.holder, asked.call, asked.lease, asked.own_write);
    END IF;
    SELECT * INTO op FROM reconciler.operations o
        WHERE o.tenant = my_tenant AND o.operation_id = asked.operation_id FOR NO KEY UPDATE;
    IF op.operation_id IS NULL THEN
        PERFORM reconciler.refuse_input(
            format('claim_operation: there is no operation "%s"', left(asked.operation_id, 100)),
            'Open it with open_operation and commit before claiming it.');
    END IF;
    answer := reconciler.claim_locked(op, asked.holder, asked.call, asked.lease, asked.own_write);
    IF NOT (answer -> 'claimed')::boolean THEN
        PERFORM reconciler.note_repeat(op, answer);
    END IF;
    RETURN answer;
END $$;
