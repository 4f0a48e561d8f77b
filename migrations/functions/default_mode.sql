CREATE OR REPLACE FUNCTION reconciler.default_mode(policy jsonb, for_account text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- The only mode of the account (of the source, where the account is not known), else
-- live.
DECLARE
    modes integer;
    the_one text;
BEGIN
    SELECT count(DISTINCT a.value ->> 'mode'), min(a.value ->> 'mode') INTO modes, the_one
        FROM jsonb_array_elements(coalesce(nullif(policy -> 'accounts', 'null'), '[]')) a
        WHERE for_account IS NULL OR a.value ->> 'account' = for_account;
    RETURN CASE modes WHEN 1 THEN the_one ELSE 'live' END;
END $$;
