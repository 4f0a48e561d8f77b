CREATE OR REPLACE FUNCTION reconciler.default_mode(policy jsonb, for_account text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- The only mode of the account (of the source, where the account is not known), else
-- live.
DECLARE
    modes integer;
    the_one text;
BEGIN
    IF jsonb_array_length(coalesce(nullif(policy -> 'accounts', 'null'), '[]')) < 2 THEN -- nearly every source
        RETURN CASE WHEN for_account IS NULL OR policy #>> '{accounts,0,account}' = for_account
            THEN coalesce(policy #>> '{accounts,0,mode}', 'live') ELSE 'live' END;
    END IF;
    SELECT count(DISTINCT a.value ->> 'mode'), min(a.value ->> 'mode') INTO modes, the_one
        FROM jsonb_array_elements(policy -> 'accounts') a
        WHERE for_account IS NULL OR a.value ->> 'account' = for_account;
    RETURN CASE modes WHEN 1 THEN the_one ELSE 'live' END;
END $$;
