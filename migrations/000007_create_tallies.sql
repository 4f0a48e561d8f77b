-- +goose Up
-- Tallies: how often things happened, for counters that survive restarts and count
-- every actor. They are counted from the journal, and folded so that each reading
-- counts only what came since.

-- Which transaction wrote an entry: everything below the oldest one that still runs is
-- there for good, which no time of day says. Rows from before have 0 and are counted by
-- the first fold.
ALTER TABLE reconciler.journal ADD COLUMN tx xid8 NOT NULL DEFAULT '0';
ALTER TABLE reconciler.journal ALTER COLUMN tx SET DEFAULT pg_current_xact_id();
CREATE INDEX journal_tx ON reconciler.journal (tenant, tx);
COMMENT ON COLUMN reconciler.journal.tx IS 'The transaction that wrote it; for counting, and no part of the chain.';

CREATE TABLE reconciler.tallies (
    tenant text   NOT NULL,
    name   text   NOT NULL,
    labels text[] NOT NULL,
    n      bigint NOT NULL,
    CONSTRAINT tallies_pkey PRIMARY KEY (tenant, name, labels),
    CONSTRAINT tallies_counts CHECK (n >= 0)
);
COMMENT ON TABLE reconciler.tallies IS 'How often things happened, as far as they were folded; what came since is counted when it is asked for.';
COMMENT ON COLUMN reconciler.tallies.labels IS 'The values of the counter''s labels, in the order in which docs/metrics.md names them.';

CREATE TABLE reconciler.tally_marks (
    tenant    text        NOT NULL,
    folded_to xid8        NOT NULL,
    folded_at timestamptz NOT NULL,
    after     timestamptz,
    CONSTRAINT tally_marks_pkey PRIMARY KEY (tenant)
);
COMMENT ON COLUMN reconciler.tally_marks.folded_to IS 'Entries of earlier transactions are in the tallies, this one''s and later ones'' are not.';

COMMENT ON COLUMN reconciler.tally_marks.after IS
    'Set where a dump was restored into a server whose transactions have lower numbers: entries up to then are in the tallies.';

CREATE TABLE reconciler.repeats (
    tenant    text        NOT NULL,
    repeat_id bigint      GENERATED ALWAYS AS IDENTITY,
    reason    text        NOT NULL,
    at        timestamptz NOT NULL,
    CONSTRAINT repeats_pkey PRIMARY KEY (tenant, repeat_id)
);
COMMENT ON TABLE reconciler.repeats IS 'Repeats that open_operation and claim_operation did not let happen, until they are folded into the tallies.';

-- Openings of findings and runs of re-verification that are in the tallies.
ALTER TABLE reconciler.findings ADD COLUMN tallied integer NOT NULL DEFAULT 0;
-- A column, because only of one are there statistics that show how few they are.
ALTER TABLE reconciler.findings ADD COLUMN to_tally boolean NOT NULL GENERATED ALWAYS AS (tallied <> openings) STORED;
CREATE INDEX findings_to_tally ON reconciler.findings (tenant, fingerprint) WHERE to_tally;
COMMENT ON COLUMN reconciler.findings.tallied IS 'How many of its openings are in the tallies.';
ALTER TABLE reconciler.runs ADD COLUMN tallied boolean NOT NULL DEFAULT false;
CREATE INDEX runs_to_tally ON reconciler.runs (tenant, run_id) WHERE finished_at IS NOT NULL AND NOT tallied;

-- The gauges read the open operations, and effects without owner of some kinds, from
-- indexes alone.
DROP INDEX reconciler.operations_open;
CREATE INDEX operations_open ON reconciler.operations (tenant, source, action, state, unknown_since)
    INCLUDE (effect_id, lease_until, key_expires_at) WHERE state NOT IN ('succeeded', 'failed');
CREATE INDEX effects_unowned_kind ON reconciler.effects (tenant, source, kind) WHERE owner IS NULL;

-- +goose Down
DROP INDEX reconciler.effects_unowned_kind;
DROP INDEX reconciler.operations_open;
CREATE INDEX operations_open ON reconciler.operations (tenant, source, action, state, unknown_since)
    WHERE state NOT IN ('succeeded', 'failed');
DROP INDEX reconciler.runs_to_tally;
ALTER TABLE reconciler.runs DROP COLUMN tallied;
DROP INDEX reconciler.findings_to_tally;
ALTER TABLE reconciler.findings DROP COLUMN to_tally, DROP COLUMN tallied;
DROP TABLE reconciler.repeats, reconciler.tally_marks, reconciler.tallies;
DROP INDEX reconciler.journal_tx;
ALTER TABLE reconciler.journal DROP COLUMN tx;
