CREATE OR REPLACE FUNCTION reconciler.unfit_answer(f reconciler.findings, asked record, wanted text) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
-- Why the answer does not fit the finding at all; null when it may.
BEGIN
    IF f.kind = 'blind' THEN
        RETURN reconciler.refusal('a source that cannot be asked is not settled by a word',
            'It ends when the source answers; acknowledge or snooze it until then.');
    END IF;
    IF asked.verb = 'ignore' AND f.kind <> 'orphan' THEN
        RETURN reconciler.refusal('only an effect that nobody explains can be none of ours',
            'Accept the finding, or say what came of its operation.');
    END IF;
    IF wanted IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reconciler.operations o
        WHERE o.tenant = f.tenant AND o.operation_id = wanted) THEN
        RETURN reconciler.refusal(format('there is no operation %s', left(wanted, 100)),
            '`reconciler operations list` shows what there is.');
    END IF;
    IF asked.verb NOT IN ('happened', 'did-not-happen', 'release') THEN
        RETURN NULL;
    END IF;
    IF f.operation_ids = '{}' THEN
        RETURN reconciler.refusal('the finding names no operation of ours', CASE WHEN f.kind = 'orphan'
            THEN 'Adopt the effect, or ignore it as not ours.' ELSE 'Accept it when it is seen to.' END);
    END IF;
    IF wanted IS NULL THEN
        RETURN reconciler.refusal(format('the finding names %s operations', cardinality(f.operation_ids)),
            'Say which one is meant, with `reconciler findings resolve --operation`: ' || array_to_string(f.operation_ids, ', ') || '.');
    END IF;
    IF NOT wanted = ANY (f.operation_ids) THEN
        RETURN reconciler.refusal(format('the finding is not about operation %s', left(wanted, 100)),
            'It is about ' || array_to_string(f.operation_ids, ', ') || '.');
    END IF;
    RETURN NULL;
END $$;
