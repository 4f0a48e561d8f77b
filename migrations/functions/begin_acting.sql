CREATE OR REPLACE FUNCTION reconciler.begin_acting() RETURNS void
LANGUAGE plpgsql AS $$
-- After losing a race a function must see the winner's row, which only READ COMMITTED
-- shows. And nothing may be sent on the strength of a commit that a crash can lose.
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'the ledger''s functions run in READ COMMITTED, not in %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'serialization_failure', HINT = 'Run the transaction again in READ COMMITTED.';
    END IF;
    PERFORM reconciler.commit_surely();
END $$;
