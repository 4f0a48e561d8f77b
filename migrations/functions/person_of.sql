CREATE OR REPLACE FUNCTION reconciler.person_of(
    my_tenant text, named text, needed text[], OUT person text, OUT refusal text)
LANGUAGE plpgsql STABLE AS $$
-- Who acts. In the database it is the role that logged in, under the name that the people
-- list gives it; whoever logged in cannot choose another one. Only the daemon, which
-- authenticated somebody elsewhere, names that person, and the list says what they may.
DECLARE
    list jsonb;
BEGIN
    SELECT coalesce(p.body -> 'people', '[]') INTO list FROM reconciler.people p WHERE p.tenant = my_tenant;
    IF named IS NULL THEN
        SELECT min(l.value ->> 'name') INTO person FROM jsonb_array_elements(list) l
            WHERE l.value ->> 'db_role' = session_user;
        person := coalesce(person, session_user);
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_roles r
        WHERE r.rolname = 'reconciler_daemon' AND pg_has_role(session_user, r.oid, 'MEMBER')) THEN
        RAISE EXCEPTION 'only the daemon may act for another person'
            USING ERRCODE = 'insufficient_privilege', HINT = 'Leave "person" out: you are who logged in.';
    END IF;
    person := named;
    IF NOT EXISTS (SELECT 1 FROM jsonb_array_elements(list) l WHERE l.value ->> 'name' = named) THEN
        refusal := format('%s is not on the list of people', left(named, 100));
    ELSIF NOT EXISTS (SELECT 1 FROM jsonb_array_elements(list) l
        WHERE l.value ->> 'name' = named AND l.value ->> 'role' = ANY (needed)) THEN
        refusal := format('%s may not do this: it takes the role %s', left(named, 100), array_to_string(needed, ' or '));
    END IF;
END $$;
