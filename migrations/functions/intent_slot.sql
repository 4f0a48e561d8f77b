CREATE OR REPLACE FUNCTION reconciler.intent_slot(op reconciler.operations) RETURNS text
LANGUAGE plpgsql STABLE AS $$
-- Hashed, so that the unique index stays small whatever the target is.
BEGIN
    RETURN encode(sha256(convert_to(
        json_build_array(op.action, op.target, op.amount, op.currency)::text, 'UTF8')), 'hex');
END $$;
