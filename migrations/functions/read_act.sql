CREATE OR REPLACE FUNCTION reconciler.read_act(
    input jsonb, OUT finding_id text, OUT verb text, OUT version bigint, OUT reason text, OUT action_key text,
    OUT person text, OUT via text, OUT assignee text, OUT until timestamptz)
LANGUAGE plpgsql STABLE AS $$
-- What act was given, checked.
DECLARE
    me CONSTANT text := 'act';
    common record;
    instant text;
BEGIN
    PERFORM reconciler.check_fields(me, input, ARRAY['finding_id', 'verb', 'version', 'reason', 'action_key', 'person',
        'via', 'assignee', 'until']);
    common := reconciler.read_person(me, input, ARRAY['acknowledge', 'snooze', 'assign', 'check_now']);
    SELECT common.finding_id, common.verb, common.version, common.reason, common.action_key, common.person, common.via
        INTO finding_id, verb, version, reason, action_key, person, via;
    assignee := reconciler.text_field(me, input, 'assignee', verb = 'assign');
    instant := reconciler.text_field(me, input, 'until', verb = 'snooze');
    BEGIN
        until := instant::timestamptz;
    EXCEPTION WHEN invalid_datetime_format OR datetime_field_overflow THEN
        PERFORM reconciler.refuse_input(format('%s: "until" is no instant: %s', me, left(instant, 40)),
            'Write it as 2026-03-01T09:00:00Z.');
    END;
END $$;
