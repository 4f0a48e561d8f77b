CREATE OR REPLACE FUNCTION reconciler.seconds(f reconciler.findings, asked record, plan jsonb, person text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether this is the second, other person saying the same about the same.
BEGIN
    RETURN f.proposal ->> 'person' <> person AND reconciler.proposed_already(f, asked, plan);
END $$;
