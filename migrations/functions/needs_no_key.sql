CREATE OR REPLACE FUNCTION reconciler.needs_no_key(policy jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
-- Whether a second effect does no harm by the nature of the action: a read, or what is
-- idempotent without a key. Where the provider keeps keys, an idempotent action may be so
-- only by its key, so the key's lifetime binds it too.
BEGIN
    RETURN coalesce(policy ->> 'class' = 'read'
        OR policy ->> 'class' = 'idempotent' AND (policy ->> 'key_lifetime')::interval <= interval '0', false);
END $$;
