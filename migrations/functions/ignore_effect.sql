CREATE OR REPLACE FUNCTION reconciler.ignore_effect(my_tenant text, identity jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE reconciler.effects e SET ignored = true
        WHERE e.tenant = my_tenant AND e.system = identity ->> 'system' AND e.account = identity ->> 'account'
            AND e.mode = identity ->> 'mode' AND e.id = identity ->> 'id';
END $$;
