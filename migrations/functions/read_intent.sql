CREATE OR REPLACE FUNCTION reconciler.read_intent(input jsonb) RETURNS reconciler.operations
LANGUAGE plpgsql STABLE AS $$
-- What open_operation was given, checked; fields that policy and ledger add are null.
DECLARE
    me CONSTANT text := 'open_operation';
    intent reconciler.operations;
BEGIN
    PERFORM reconciler.check_fields(me, input, ARRAY['action', 'target', 'request', 'amount', 'currency', 'parent',
        'account', 'mode', 'key', 'case', 'step', 'id', 'reference', 'group', 'run', 'tool_call', 'metadata', 'agent']);
    intent.action := reconciler.text_field(me, input, 'action', true);
    intent.target := reconciler.text_field(me, input, 'target', true);
    intent.parent := reconciler.text_field(me, input, 'parent');
    intent.account := reconciler.text_field(me, input, 'account');
    intent.mode := reconciler.text_field(me, input, 'mode');
    intent.operation_id := reconciler.text_field(me, input, 'id');
    intent.reference := reconciler.text_field(me, input, 'reference');
    intent."group" := reconciler.text_field(me, input, 'group');
    intent.run := reconciler.text_field(me, input, 'run');
    intent.tool_call := reconciler.text_field(me, input, 'tool_call');
    intent.agent := reconciler.text_field(me, input, 'agent');
    intent."case" := reconciler.text_field(me, input, 'case');
    intent.step := reconciler.integer_field(me, input, 'step');
    intent.key := reconciler.text_field(me, input, 'key');
    IF intent.key IS NULL AND (intent."case" IS NULL) <> (intent.step IS NULL) THEN
        PERFORM reconciler.refuse_input(me || ': "case" and "step" belong together',
            'Give both to have the key derived from them, or give "key".');
    END IF;
    intent.amount := reconciler.integer_field(me, input, 'amount');
    intent.currency := reconciler.text_field(me, input, 'currency');
    IF intent.amount <= 0 THEN
        PERFORM reconciler.refuse_input(format('%s: field "amount" is %s, not above 0', me, intent.amount),
            'Leave the field out when there is no amount.');
    END IF;
    IF intent.currency !~ '^[A-Za-z]{3}$' THEN
        PERFORM reconciler.refuse_input(format('%s: "%s" is not a currency', me, left(intent.currency, 40)),
            'Write its three-letter ISO 4217 code, such as EUR.');
    END IF;
    intent.currency := upper(intent.currency COLLATE "C");
    IF intent.amount IS NOT NULL AND intent.currency IS NULL THEN
        PERFORM reconciler.refuse_input(me || ': there is no "currency" beside "amount"',
            'Add the amount''s ISO 4217 code.');
    END IF;
    intent.metadata := reconciler.json_field(me, input, 'metadata');
    intent.request := reconciler.canonical_request(me, input);
    RETURN intent;
END $$;
