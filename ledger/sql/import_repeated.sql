-- Marks the rows of a file that say nothing new of effects that were stored before:
-- all that a row tells is what is stored. What it leaves out is not told.
-- $1 tenant  $2 system  $3 look
UPDATE pg_temp.effect_rows r SET repeated = true
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.system = $2 AND e.account = r.account AND e.mode = r.mode AND e.id = r.id
    AND e.look_id IS DISTINCT FROM $3 AND NOT r.again
    AND e.kind = r.kind AND e.status = r.status AND e.created_at = r.created_at
    AND (r.amount IS NULL OR r.amount = e.amount) AND (r.currency IS NULL OR r.currency = e.currency)
    AND (r.parent IS NULL OR r.parent = e.parent)
    AND (r.other_parents IS NULL OR r.other_parents = e.other_parents)
    AND (r.target IS NULL OR r.target = e.target) AND (r.reference IS NULL OR r.reference = e.reference)
    AND (r.natural_reference IS NULL OR r.natural_reference = e.natural_reference)
    AND (r.key IS NULL OR r.key = e.key) AND (r.updated_at IS NULL OR r.updated_at = e.updated_at)
    AND (r.fee IS NULL OR r.fee = e.fee) AND (r.net IS NULL OR r.net = e.net)
    AND (r.settlement_amount IS NULL OR r.settlement_amount = e.settlement_amount)
    AND (r.settlement_currency IS NULL OR r.settlement_currency = e.settlement_currency)
    AND (r.created_by IS NULL OR r.created_by = e.created_by)
    AND (r.failure_reason IS NULL OR r.failure_reason = e.failure_reason)
    AND (r.caused_by IS NULL OR r.caused_by = e.caused_by)
    AND (r.parent_total IS NULL OR r.parent_total = e.parent_total)
    AND (r.metadata IS NULL OR r.metadata::jsonb = e.metadata)
