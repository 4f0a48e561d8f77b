CREATE OR REPLACE FUNCTION reconciler.commit_surely() RETURNS void
LANGUAGE plpgsql AS $$
-- What is acknowledged is on disk, and on the synchronous standby where there is one, also
-- where the database is set to answer earlier. Where somebody ends that wait, PostgreSQL
-- commits and tells it in a warning alone, which must reach the client.
BEGIN
    IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF current_setting('client_min_messages') = 'error' THEN
        PERFORM set_config('client_min_messages', 'warning', true);
    END IF;
END $$;
