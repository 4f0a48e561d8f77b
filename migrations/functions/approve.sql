CREATE OR REPLACE FUNCTION reconciler.approve(input jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = reconciler, pg_temp AS $$
-- Settles a finding as a person says, or keeps that as a proposal until a second, other
-- person says the same.
DECLARE
    asked record;
    who record;
    f reconciler.findings;
    my_tenant text := reconciler.current_tenant();
    now timestamptz;
    answer jsonb;
    plan jsonb;
BEGIN
    PERFORM reconciler.begin_acting();
    asked := reconciler.read_approve(input);
    who := reconciler.person_of(my_tenant, asked.person, ARRAY['approver']);
    f := reconciler.lock_finding('approve', my_tenant, asked.finding_id, asked.operation_id, asked.effect_id);
    answer := reconciler.person_repeat(my_tenant, asked);
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    now := reconciler.clock(); -- after the locks, for which it may have waited
    IF who.refusal IS NOT NULL THEN
        RETURN reconciler.person_refused(f, who.person, who.refusal, 'Ask somebody who may, or have the list of people changed.');
    END IF;
    answer := reconciler.person_stale(f, who.person, asked.version);
    IF answer IS NOT NULL THEN
        RETURN answer;
    END IF;
    IF asked.verb = 'reject' THEN
        RETURN reconciler.reject_proposal(f, asked, who.person, now);
    END IF;
    PERFORM reconciler.end_leases(my_tenant, f.operation_ids || asked.operation_id, now);
    plan := reconciler.plan_person(f, asked, now);
    IF plan ? 'refusal' THEN
        RETURN reconciler.person_refused(f, who.person, plan ->> 'refusal', plan ->> 'next');
    END IF;
    IF plan ? 'two' AND reconciler.unknown_person(my_tenant, who.person) THEN
        RETURN reconciler.person_refused(f, who.person,
            format('it takes two people, and %s is the name of a login that people gives nobody', left(who.person, 100)),
            'Have this login written to the one whose it is (db_role), or decide in Slack.');
    END IF;
    IF plan ? 'two' AND NOT reconciler.seconds(f, asked, plan, who.person) THEN
        RETURN reconciler.propose(f, asked, plan, who.person, now);
    END IF;
    RETURN reconciler.carry_out(f, asked, plan, who.person, now);
EXCEPTION WHEN unique_violation THEN
    -- Another transaction took the slot, or the key, since it was looked for.
    RAISE EXCEPTION 'approve: another operation of the same intent was opened meanwhile'
        USING ERRCODE = 'serialization_failure', HINT = 'Call it again with the same action_key.';
END $$;
