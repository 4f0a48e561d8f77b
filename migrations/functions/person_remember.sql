CREATE OR REPLACE FUNCTION reconciler.person_remember(
    f reconciler.findings, asked record, now timestamptz, answer jsonb, details jsonb)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Keeps what was done and answered, as evidence and against repeats.
BEGIN
    INSERT INTO reconciler.person_actions (tenant, action_key, finding_id, at, person, verb, answer, details)
        VALUES (f.tenant, asked.action_key, f.finding_id, now, answer ->> 'person', asked.verb, answer,
            jsonb_strip_nulls(jsonb_build_object('role', session_user, 'via', asked.via, 'reason', asked.reason)
                || jsonb_strip_nulls(details)));
    RETURN answer;
END $$;
