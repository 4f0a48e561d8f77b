CREATE OR REPLACE FUNCTION reconciler.policy_marks(policy jsonb) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
-- A list of two known words reads the same as an array once its brackets are changed;
-- an expression costs a tenth of a query, and this runs at every opening and claim.
BEGIN
    RETURN translate(coalesce(policy ->> 'marks', '[]'), '[]', '{}')::text[];
END $$;
