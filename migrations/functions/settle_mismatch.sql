CREATE OR REPLACE FUNCTION reconciler.settle_mismatch(
    f reconciler.findings, asked record, person text, proposer text, now timestamptz)
RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
-- Two people linked an effect that differs. That difference is settled with it, so that
-- the next look does not raise what they just decided.
BEGIN
    INSERT INTO reconciler.findings (tenant, finding_id, fingerprint, kind, certainty, state, source, operation_ids,
            effect_ids, effects, observed, reason, amount, currency, opened_at, settled_at, settled_by, settled_as, ending)
        SELECT f.tenant, m.finding_id, m.fingerprint, m.kind, m.certainty, 'settled', m.source, m.operation_ids, m.effect_ids,
            m.effects, m.observed, m.reason, m.amount, m.currency, now, now, person, asked.verb,
            format('%s and %s settled it as %s: %s', proposer, person, asked.verb, asked.reason)
        FROM jsonb_to_record(asked.mismatch) AS m (finding_id text, fingerprint text, kind text, certainty text, source text,
            operation_ids text[], effect_ids text[], effects jsonb, observed jsonb, reason text, amount bigint, currency text)
        WHERE m.kind = 'mismatch'
        ON CONFLICT (tenant, fingerprint) DO UPDATE
        SET state = 'settled', observed = excluded.observed, settled_at = now, settled_by = person,
            settled_as = excluded.settled_as, ending = excluded.ending, proposal = NULL, ended_at = NULL,
            version = findings.version + 1
        WHERE findings.finding_id <> f.finding_id;
END $$;
