CREATE OR REPLACE FUNCTION reconciler.already(op reconciler.operations) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Sums of the other operations for the same target, so that a caller's own limit can
-- count them. Openings that are not committed yet are not in it.
DECLARE
    sum_succeeded numeric;
    sum_open numeric;
BEGIN
    SELECT coalesce(sum(o.amount) FILTER (WHERE o.state = 'succeeded'), 0),
            coalesce(sum(o.amount) FILTER (WHERE o.state NOT IN ('succeeded', 'failed')), 0)
        INTO sum_succeeded, sum_open
        FROM reconciler.operations o
        WHERE o.tenant = op.tenant AND o.action = op.action AND o.target = op.target
            AND (o.currency = op.currency OR (o.currency IS NULL AND op.currency IS NULL))
            AND o.operation_id <> op.operation_id;
    RETURN jsonb_build_object('succeeded', sum_succeeded, 'open', sum_open);
END $$;
