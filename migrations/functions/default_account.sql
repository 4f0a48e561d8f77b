CREATE OR REPLACE FUNCTION reconciler.default_account(policy jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- The only account of the source. Of several none is guessed: null, and then no look
-- can say that the effect is absent. A source without accounts has "default".
DECLARE
    accounts integer;
    the_one text;
BEGIN
    IF jsonb_array_length(coalesce(nullif(policy -> 'accounts', 'null'), '[]')) < 2 THEN
        RETURN coalesce(policy #>> '{accounts,0,account}', 'default'); -- nearly every source
    END IF;
    SELECT count(DISTINCT a.value ->> 'account'), min(a.value ->> 'account') INTO accounts, the_one
        FROM jsonb_array_elements(policy -> 'accounts') a;
    RETURN CASE accounts WHEN 1 THEN the_one END;
END $$;
