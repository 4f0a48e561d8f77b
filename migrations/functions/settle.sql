CREATE OR REPLACE FUNCTION reconciler.settle(
    f reconciler.findings, verb text, person text, reason text, proposer text, now timestamptz)
RETURNS reconciler.findings
LANGUAGE plpgsql VOLATILE AS $$
-- Ends a finding by a person's word. Whatever was put off or proposed is over with it.
BEGIN
    f.state := 'settled';
    f.version := f.version + 1;
    f.settled_at := now;
    f.settled_by := person;
    f.settled_as := verb;
    f.ending := format('%s%s settled it as %s: %s', CASE WHEN proposer IS NOT NULL THEN proposer || ' and ' ELSE '' END, person, verb, reason);
    UPDATE reconciler.findings x
        SET state = f.state, version = f.version, settled_at = now, settled_by = person, settled_as = verb, ending = f.ending,
            proposal = NULL, acknowledged_until = NULL, snoozed_until = NULL
        WHERE x.tenant = f.tenant AND x.finding_id = f.finding_id;
    RETURN f;
END $$;
