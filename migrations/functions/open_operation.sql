CREATE OR REPLACE FUNCTION reconciler.open_operation(input jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- Records one intent before anything is sent, or says which operation already is it.
DECLARE
    wanted reconciler.operations;
    policy reconciler.policies;
    key_given boolean;
    entry text;
BEGIN
    PERFORM reconciler.begin_acting();
    wanted := reconciler.read_intent(input);
    wanted.tenant := reconciler.current_tenant();
    SELECT * INTO policy FROM reconciler.policies p
        WHERE p.tenant = wanted.tenant AND p.action = wanted.action AND p.active;
    IF policy.action IS NULL THEN
        RETURN reconciler.reject_opening(format('there is no policy for action "%s"', left(wanted.action, 100)));
    END IF;
    IF (policy.body -> 'amount_required')::boolean AND wanted.amount IS NULL THEN
        RETURN reconciler.reject_opening(format('action "%s" needs an amount', wanted.action));
    END IF;

    key_given := wanted.key IS NOT NULL OR wanted."case" IS NOT NULL;
    wanted.created_at := reconciler.clock();
    wanted.key := coalesce(wanted.key,
        reconciler.derived_key(wanted."case", wanted.action, wanted.target, wanted.step),
        reconciler.new_id(wanted.created_at));
    wanted.operation_id := coalesce(wanted.operation_id, reconciler.new_id(wanted.created_at));
    wanted.source := policy.body ->> 'source';
    wanted.account := coalesce(wanted.account, reconciler.default_account(policy.body));
    wanted.mode := coalesce(wanted.mode, reconciler.default_mode(policy.body, wanted.account));
    wanted.request_hash := reconciler.request_digest(wanted);
    wanted.slot := CASE WHEN (policy.body -> 'one_open')::boolean THEN reconciler.intent_slot(wanted) END;
    wanted.marks := reconciler.policy_marks(policy.body);
    wanted.policy_version := policy.version;
    wanted.state := 'pending';
    entry := reconciler.entry_body('opened', wanted.created_at, jsonb_build_object(
        'by', wanted.agent, 'to', wanted.state, 'source', wanted.source, 'action', wanted.action,
        'amount', wanted.amount, 'currency', wanted.currency, 'account', wanted.account, 'mode', wanted.mode,
        'key', wanted.key, 'run', wanted.run, 'tool_call', wanted.tool_call, 'policy_version', policy.version,
        'request_hash', encode(wanted.request_hash, 'hex')));
    wanted.chain_head := reconciler.entry_hash('', entry);

    -- The insert comes first: nearly every opening is a new one, and the database picks
    -- the winner of a race. The loser looks again, for the winner may be gone meanwhile.
    FOR try IN 0..3 LOOP
        IF reconciler.insert_opened(wanted, entry, (policy.body ->> 'stale_pending')::interval) THEN
            RETURN reconciler.open_answer(wanted, 'new', NULL);
        END IF;
        DECLARE
            answer jsonb := reconciler.find_opened(wanted, key_given);
        BEGIN
            IF answer IS NOT NULL THEN
                IF answer ->> 'verdict' IN ('existing', 'open_elsewhere') THEN
                    INSERT INTO reconciler.repeats (tenant, reason, at)
                        VALUES (wanted.tenant, answer ->> 'verdict', wanted.created_at);
                END IF;
                RETURN answer;
            END IF;
        END;
    END LOOP;
    RAISE EXCEPTION 'open_operation: other openings of the same intent came and went meanwhile'
        USING ERRCODE = 'serialization_failure', HINT = 'Call it again with the same key.';
END $$;
