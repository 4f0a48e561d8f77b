CREATE OR REPLACE FUNCTION reconciler.act(input jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- What an operator does with a finding: acknowledge, snooze, assign, check_now. It
-- changes no operation's state.
DECLARE
    asked record;
    who record;
    f reconciler.findings;
    my_tenant text := reconciler.current_tenant();
    now timestamptz;
    answer jsonb;
BEGIN
    PERFORM reconciler.begin_acting();
    asked := reconciler.read_act(input);
    who := reconciler.person_of(my_tenant, asked.person, ARRAY['operator', 'approver']);
    f := reconciler.lock_finding('act', my_tenant, asked.finding_id, NULL, NULL);
    answer := reconciler.person_repeat(my_tenant, asked);
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    now := reconciler.clock(); -- after the locks, for which it may have waited
    IF who.refusal IS NOT NULL THEN
        RETURN reconciler.person_refused(f, who.person, who.refusal, 'Ask somebody who may, or have the list of people changed.');
    END IF;
    answer := coalesce(reconciler.person_stale(f, who.person, asked.version), reconciler.act_refusal(f, asked, who.person, now));
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    f := reconciler.act_locked(f, asked, who.person, now);
    answer := reconciler.person_answer('done', f, who.person, jsonb_build_object(
        'assignee', f.assignee,
        'until', CASE WHEN asked.verb IN ('acknowledge', 'snooze') THEN reconciler.utc_text(coalesce(f.snoozed_until, f.acknowledged_until)) END));
    RETURN reconciler.person_remember(f, asked, now, answer, jsonb_build_object(
        'assignee', asked.assignee, 'until', reconciler.utc_text(asked.until)));
END $$;
