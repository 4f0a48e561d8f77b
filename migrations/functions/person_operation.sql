CREATE OR REPLACE FUNCTION reconciler.person_operation(f reconciler.findings, asked record) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- Which operation is meant: the named one, else the only one of the finding; null where
-- none is. An effect is adopted by the one that is named and else by a new one.
BEGIN
    RETURN CASE
        WHEN asked.operation_id IS NOT NULL THEN asked.operation_id
        WHEN asked.verb IN ('happened', 'did-not-happen', 'release') AND cardinality(f.operation_ids) = 1
            THEN f.operation_ids[1] END;
END $$;
