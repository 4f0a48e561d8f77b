CREATE OR REPLACE FUNCTION reconciler.claim_refusal(
    op reconciler.operations, policy jsonb, for_call text, lease_until timestamptz, now timestamptz)
RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- Why the operation may not be sent now; null when it may. Its lease, if any, is over.
BEGIN
    IF op.request IS NULL THEN
        RETURN 'its request is not stored, so the same cannot be sent again: it was imported or its payload was erased';
    END IF;
    IF op.state NOT IN ('pending', 'unknown') THEN
        RETURN format('it is %s', op.state);
    END IF;
    IF op.attempts >= (policy -> 'per_operation')::integer THEN
        RETURN format('all %s attempts of the operation are used', op.attempts);
    END IF;
    IF op.call = for_call AND op.call_attempts >= (policy -> 'per_call')::integer THEN
        RETURN format('all %s attempts of this call are used', op.call_attempts);
    END IF;
    IF op.state = 'pending' THEN
        RETURN CASE
            WHEN NOT op.in_doubt THEN NULL
            WHEN NOT op.released THEN 'an earlier attempt is in doubt and nothing released it'
            ELSE 'it was released, but ' || reconciler.repeat_refusal(op, policy, lease_until)
        END;
    END IF;
    RETURN CASE
        WHEN policy ->> 'repeat' <> 'same_key' THEN 'its outcome is unknown and its policy allows no repeat'
        WHEN op.last_class = 'stored_error' THEN 'the provider stored an error under its key; a repeat would only return it'
        ELSE coalesce(reconciler.repeat_refusal(op, policy, lease_until),
            CASE WHEN op.retry_at > now THEN 'its back-off is not over' END)
    END;
END $$;
