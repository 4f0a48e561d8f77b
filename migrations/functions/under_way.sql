CREATE OR REPLACE FUNCTION reconciler.under_way(op reconciler.operations) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- While a call is under way nobody decides what came of it; null when none is.
BEGIN
    IF op.state = 'in_progress' THEN
        RETURN reconciler.refusal(format('a call is under way, by %s until %s', coalesce(op.lease_holder, 'somebody'),
            reconciler.people_time(op.lease_until)), 'Wait until then: its holder may still tell what came of it.');
    END IF;
    RETURN NULL;
END $$;
