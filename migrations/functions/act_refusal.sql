CREATE OR REPLACE FUNCTION reconciler.act_refusal(f reconciler.findings, asked record, person text, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Why the action is refused; null when it is not. A finding that is put aside for ever
-- would be one that nobody looks at again.
DECLARE
    longest CONSTANT interval := interval '90 days';
    names text[];
BEGIN
    IF asked.until <= now OR asked.until > now + longest THEN
        RETURN reconciler.person_refused(f, person, format('%s is not within the next 90 days', reconciler.people_time(asked.until)),
            'Choose a time from now on; it can be put off again then.');
    END IF;
    IF asked.verb = 'assign' THEN
        SELECT array_agg(DISTINCT l.value ->> 'name') INTO names
            FROM reconciler.people p, jsonb_array_elements(p.body -> 'people') l WHERE p.tenant = f.tenant;
        IF NOT asked.assignee = ANY (names) THEN
            RETURN reconciler.person_refused(f, person, format('there is no %s among the people', left(asked.assignee, 100)),
                'Assign it to one of: ' || array_to_string(names, ', ') || '.');
        END IF;
    END IF;
    IF asked.verb = 'check_now' AND f.operation_ids = '{}' AND f.kind <> 'blind' THEN
        RETURN reconciler.person_refused(f, person, 'it names no operation that could be looked at now',
            'Its source is listed by the next audit, which looks at it again.');
    END IF;
    RETURN NULL;
END $$;
