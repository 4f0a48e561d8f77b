CREATE OR REPLACE FUNCTION reconciler.find_opened(wanted reconciler.operations, key_given boolean) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Why wanted could not be inserted: another row has its key, its id or its slot, in
-- this order. Null when that row is gone again; then the caller tries once more.
-- VOLATILE: every statement must see what was committed a moment ago.
DECLARE
    by_key reconciler.operations;
    by_id reconciler.operations;
    holder reconciler.operations;
    known reconciler.operations;
BEGIN
    SELECT * INTO by_key FROM reconciler.operations o
        WHERE o.tenant = wanted.tenant AND o.source = wanted.source AND o.key = wanted.key;
    SELECT * INTO by_id FROM reconciler.operations o
        WHERE o.tenant = wanted.tenant AND o.operation_id = wanted.operation_id;
    IF by_key.operation_id IS NOT NULL AND by_id.operation_id IS NOT NULL
        AND by_key.operation_id <> by_id.operation_id THEN
        RETURN reconciler.open_answer(by_key, 'conflict', 'the id and the key belong to two different operations');
    END IF;
    IF by_key.operation_id IS NULL AND by_id.operation_id IS NOT NULL AND key_given THEN
        RETURN reconciler.open_answer(by_id, 'conflict', 'the id belongs to an operation with another key');
    END IF;
    known := CASE WHEN by_key.operation_id IS NOT NULL THEN by_key ELSE by_id END;
    IF known.operation_id IS NOT NULL THEN
        IF known.request_hash = wanted.request_hash THEN
            RETURN reconciler.open_answer(known, 'existing', NULL);
        END IF;
        RETURN reconciler.open_answer(known, 'conflict', CASE
            WHEN known.request_hash IS NULL THEN 'the key belongs to an imported operation, whose request is not known'
            ELSE 'the key belongs to an operation with another request' END);
    END IF;
    SELECT * INTO holder FROM reconciler.operations o
        WHERE o.tenant = wanted.tenant AND o.slot = wanted.slot;
    IF holder.operation_id IS NOT NULL THEN
        RETURN reconciler.open_answer(holder, 'open_elsewhere',
            'another operation for the same action, target, amount and currency is open');
    END IF;
    RETURN NULL;
END $$;
