CREATE OR REPLACE FUNCTION reconciler.state_after(class text, earlier_in_doubt boolean, repeat_answers boolean)
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
-- The state that a finished attempt leads to. A definite answer to a repeat says nothing
-- about the attempts before it, unless the provider answers a repeat with what the first
-- one came to.
BEGIN
    RETURN CASE class
        WHEN 'succeeded' THEN 'succeeded'
        WHEN 'refused' THEN CASE WHEN earlier_in_doubt AND NOT repeat_answers THEN 'unknown' ELSE 'failed' END
        WHEN 'not_sent' THEN CASE WHEN earlier_in_doubt THEN 'unknown' ELSE 'pending' END
        ELSE 'unknown' -- accepted, stored_error, indeterminate
    END;
END $$;
