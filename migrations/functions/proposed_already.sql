CREATE OR REPLACE FUNCTION reconciler.proposed_already(f reconciler.findings, asked record, plan jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether what waits for a second person is this answer about the same. A proposal about
-- what was observed earlier, or before it opened again, is none any more.
BEGIN
    RETURN coalesce(f.proposal ->> 'verb' = asked.verb
        AND f.proposal ->> 'operation_id' IS NOT DISTINCT FROM plan ->> 'operation_id'
        AND f.proposal ->> 'effect_id' IS NOT DISTINCT FROM plan ->> 'effect_id'
        AND f.proposal ->> 'action' IS NOT DISTINCT FROM plan ->> 'action'
        AND (f.proposal ->> 'openings')::integer = f.openings
        AND f.proposal -> 'observed' = f.observed, false);
END $$;
