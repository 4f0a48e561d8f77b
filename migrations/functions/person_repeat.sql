CREATE OR REPLACE FUNCTION reconciler.person_repeat(my_tenant text, asked record) RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- The answer that this very action was given before, so that a second click or a lost
-- answer does nothing twice; null when it is new. The finding's row is locked.
DECLARE
    before reconciler.person_actions;
BEGIN
    SELECT * INTO before FROM reconciler.person_actions a
        WHERE a.tenant = my_tenant AND a.action_key = asked.action_key;
    IF before.action_key IS NULL THEN
        RETURN NULL;
    END IF;
    IF before.finding_id <> asked.finding_id OR before.verb <> asked.verb THEN
        PERFORM reconciler.refuse_input(
            format('action_key "%s" was used for another action', left(asked.action_key, 100)),
            'Give every action a key of its own; the same key is the same action told again.');
    END IF;
    RETURN before.answer || '{"repeated": true}';
END $$;
