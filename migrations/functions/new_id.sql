CREATE OR REPLACE FUNCTION reconciler.new_id(at timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
-- A UUIDv7 (RFC 9562): 48 bits of milliseconds, the rest random, so that ids made
-- together lie together in an index. gen_random_uuid brings the random bits and the
-- variant.
DECLARE
    bits bytea := uuid_send(gen_random_uuid());
BEGIN
    bits := overlay(bits PLACING substring(int8send(floor(extract(epoch FROM at) * 1000)::bigint) FROM 3) FROM 1 FOR 6);
    bits := set_byte(bits, 6, (get_byte(bits, 6) & 15) | 112);
    RETURN encode(bits, 'hex')::uuid::text;
END $$;
