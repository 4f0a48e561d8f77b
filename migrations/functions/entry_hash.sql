CREATE OR REPLACE FUNCTION reconciler.entry_hash(previous bytea, body text) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
-- One link of an operation's chain: whoever changes an entry breaks every later one.
BEGIN
    RETURN sha256(previous || convert_to(body, 'UTF8'));
END $$;
