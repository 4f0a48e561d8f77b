CREATE OR REPLACE FUNCTION reconciler.act_locked(f reconciler.findings, asked record, person text, now timestamptz)
RETURNS reconciler.findings
LANGUAGE plpgsql VOLATILE AS $$
-- Does what an operator asked for. The finding and its operations are locked.
DECLARE
    op reconciler.operations;
BEGIN
    CASE asked.verb
        WHEN 'acknowledge' THEN
            f.state := 'acknowledged';
            f.acknowledged_until := coalesce(asked.until, now + interval '4 hours');
            f.snoozed_until := NULL;
        WHEN 'snooze' THEN
            f.state := 'snoozed';
            f.snoozed_until := asked.until;
            f.acknowledged_until := NULL;
        WHEN 'assign' THEN
            f.assignee := asked.assignee;
        WHEN 'check_now' THEN
            UPDATE reconciler.checks c SET next_check = now
                WHERE c.tenant = f.tenant AND c.operation_id = ANY (f.operation_ids);
            UPDATE reconciler.source_state s SET probe_at = now
                WHERE s.tenant = f.tenant AND s.source = f.source AND s.probe_at > now AND f.kind = 'blind';
    END CASE;
    f.version := f.version + 1;
    UPDATE reconciler.findings x
        SET state = f.state, acknowledged_until = f.acknowledged_until, snoozed_until = f.snoozed_until,
            assignee = f.assignee, version = f.version
        WHERE x.tenant = f.tenant AND x.finding_id = f.finding_id;
    FOR op IN SELECT * FROM reconciler.operations o
        WHERE o.tenant = f.tenant AND o.operation_id = ANY (f.operation_ids) ORDER BY o.operation_id
    LOOP
        PERFORM reconciler.person_entry(op, op.state, f, asked, person, now, jsonb_build_object(
            'assignee', asked.assignee, 'until', CASE WHEN asked.verb IN ('acknowledge', 'snooze') THEN reconciler.utc_text(coalesce(f.snoozed_until, f.acknowledged_until)) END));
    END LOOP;
    RETURN f;
END $$;
