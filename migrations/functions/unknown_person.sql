CREATE OR REPLACE FUNCTION reconciler.unknown_person(my_tenant text, person text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
-- Whether there is a list of people and this is none of them. Such a login may be somebody
-- of the list, and then its word would make one person two. Without a list each login is one.
DECLARE
    list CONSTANT jsonb := (SELECT p.body -> 'people' FROM reconciler.people p WHERE p.tenant = my_tenant);
BEGIN
    RETURN coalesce(jsonb_array_length(list) > 0, false)
        AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements(list) l WHERE l.value ->> 'name' = person);
END $$;
