CREATE OR REPLACE FUNCTION reconciler.request_digest(op reconciler.operations) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
-- What makes two openings under one key the same: everything that the provider or the
-- books would see differently.
BEGIN
    RETURN sha256(convert_to(
        json_build_array(op.action, op.target, op.parent, op.amount, op.currency, op.account, op.mode)::text
            || op.request, 'UTF8'));
END $$;
