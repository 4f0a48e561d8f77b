CREATE OR REPLACE FUNCTION reconciler.person_answer(
    outcome text, f reconciler.findings, person text, more jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
-- What a person is answered: done, proposed, changed_meanwhile or refused, and how the
-- finding stands now.
BEGIN
    RETURN jsonb_build_object('outcome', outcome, 'finding_id', f.finding_id, 'version', f.version, 'state', f.state,
        'person', person) || jsonb_strip_nulls(more);
END $$;
