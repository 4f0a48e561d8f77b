CREATE OR REPLACE FUNCTION reconciler.effect_differs(op reconciler.operations, e reconciler.effects, policy jsonb)
RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
-- Which of the fields that both sides show differ. It may see more than the matchers, who
-- know spellings apart, and never less: then a second person looks at it.
DECLARE
    tolerance CONSTANT bigint := coalesce((policy ->> 'tolerance')::bigint, 0);
BEGIN
    RETURN ARRAY(SELECT d.field FROM (VALUES
        ('kind', e.kind <> policy ->> 'effect'),
        ('mode', e.mode <> op.mode),
        ('account', e.account <> op.account),
        ('currency', op.amount IS NOT NULL AND e.currency <> op.currency),
        -- A currency without an amount is an amount of nothing.
        ('amount', e.currency IS NOT NULL AND abs(op.amount - coalesce(e.amount, 0)) > tolerance),
        ('parent', op.parent <> e.parent AND NOT op.parent = ANY (e.other_parents)),
        ('target', normalize(op.target, NFC) <> normalize(e.target, NFC)),
        ('key', op.key <> e.key),
        -- One that names the operation's group is not this operation's alone.
        ('reference', btrim(e.reference) <> '' AND btrim(e.reference) <> op.operation_id)) AS d (field, differs)
        WHERE d.differs);
END $$;
