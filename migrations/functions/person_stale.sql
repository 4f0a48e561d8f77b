CREATE OR REPLACE FUNCTION reconciler.person_stale(f reconciler.findings, person text, seen_version bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Why the finding is no longer what the person looked at; null when it still is.
DECLARE
    how CONSTANT text := CASE f.state
        WHEN 'settled' THEN format('%s settled it as %s at %s', f.settled_by, f.settled_as, reconciler.people_time(f.settled_at))
        WHEN 'ended' THEN format('it ended by itself at %s: %s', reconciler.people_time(f.ended_at), coalesce(f.ending, 'no longer so'))
        WHEN 'open' THEN 'it is open'
        ELSE format('it is %s', f.state) END;
BEGIN
    IF seen_version <> f.version THEN
        RETURN reconciler.person_answer('changed_meanwhile', f, person, jsonb_build_object(
            'reason', format('this is about version %s of the finding, and it is at version %s: %s', seen_version, f.version, how),
            'next', 'Look at it again, then decide anew.'));
    END IF;
    IF f.state IN ('settled', 'ended') THEN
        RETURN reconciler.person_refused(f, person, how, 'Nothing is left to do here; it opens again if what was observed changes.');
    END IF;
    RETURN NULL;
END $$;
