CREATE OR REPLACE FUNCTION reconciler.reject_proposal(f reconciler.findings, asked record, person text, now timestamptz)
RETURNS jsonb
LANGUAGE plpgsql VOLATILE AS $$
-- Drops what waits for a second person. Whoever proposed it may take it back so as well.
-- The finding and its operations are locked.
DECLARE
    op reconciler.operations;
    dropped jsonb := jsonb_build_object('rejected', f.proposal - 'observed' - 'openings' - 'reason');
BEGIN
    IF f.proposal IS NULL THEN
        RETURN reconciler.person_refused(f, person, 'nothing is proposed', 'Look at it again, then decide anew.');
    END IF;
    f.proposal := NULL;
    f.version := f.version + 1;
    UPDATE reconciler.findings x SET proposal = NULL, version = f.version
        WHERE x.tenant = f.tenant AND x.finding_id = f.finding_id;
    FOR op IN SELECT * FROM reconciler.operations o
        WHERE o.tenant = f.tenant AND o.operation_id = ANY (f.operation_ids || asked.operation_id)
        ORDER BY o.operation_id
    LOOP
        PERFORM reconciler.person_entry(op, op.state, f, asked, person, now, dropped);
    END LOOP;
    RETURN reconciler.person_remember(f, asked, now, reconciler.person_answer('done', f, person), dropped);
END $$;
