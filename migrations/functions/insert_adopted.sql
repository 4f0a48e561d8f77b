CREATE OR REPLACE FUNCTION reconciler.insert_adopted(
    identity jsonb, for_action text, person text, my_tenant text, now timestamptz)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
-- Records the operation that an adopted effect stands for. It is as old as its effect, so
-- that both count in the same window; its key is the effect's where nobody else has it.
DECLARE
    e reconciler.effects;
    policy reconciler.policies;
    made text := reconciler.new_id(now);
    entry text;
BEGIN
    SELECT * INTO e FROM reconciler.effects x
        WHERE x.tenant = my_tenant AND x.system = identity ->> 'system' AND x.account = identity ->> 'account'
            AND x.mode = identity ->> 'mode' AND x.id = identity ->> 'id';
    SELECT * INTO policy FROM reconciler.policies p WHERE p.tenant = my_tenant AND p.action = for_action AND p.active;
    entry := reconciler.entry_body('opened', now, jsonb_build_object('by', person, 'to', 'succeeded', 'source', e.source,
        'action', for_action, 'amount', e.amount, 'currency', e.currency, 'account', e.account, 'mode', e.mode,
        'policy_version', policy.version, 'reason', 'Made for an adopted effect.'));
    INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency, state,
            created_at, sent_at, closed_at, effect_id, account, mode, reference, agent, policy_version, chain_seq, chain_head)
        VALUES (my_tenant, made, e.source, for_action, coalesce(e.target, e.parent, e.id), e.parent,
            CASE WHEN NOT EXISTS (SELECT 1 FROM reconciler.operations o
                WHERE o.tenant = my_tenant AND o.source = e.source AND o.key = e.key) THEN e.key END,
            e.amount, e.currency, 'succeeded', e.created_at, e.created_at, now, e.id, e.account, e.mode,
            e.natural_reference, person, policy.version, 1, reconciler.entry_hash('', entry));
    INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
        VALUES (my_tenant, made, 1, 'opened', now, entry, reconciler.entry_hash('', entry));
    INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
        VALUES (my_tenant, made, e.source, true, reconciler.first_reverification(made, now));
    RETURN made;
END $$;
