-- +goose Up
-- What people do with findings: who they are, what they did, and what waits for a
-- second one of them.

CREATE TABLE reconciler.people (
    tenant     text        NOT NULL,
    body       jsonb       NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT people_pkey PRIMARY KEY (tenant),
    CONSTRAINT people_body_is_object CHECK (jsonb_typeof(body) = 'object')
);
COMMENT ON TABLE reconciler.people IS
    'Who may act, and above which amounts two people must agree, as the configuration says. The functions read it, so that nobody chooses a name or a limit by choosing a file.';

CREATE TABLE reconciler.person_actions (
    tenant     text        NOT NULL,
    action_key text        NOT NULL,
    finding_id text        NOT NULL,
    at         timestamptz NOT NULL,
    person     text        NOT NULL,
    verb       text        NOT NULL,
    answer     jsonb       NOT NULL,
    details    jsonb       NOT NULL,
    CONSTRAINT person_actions_pkey PRIMARY KEY (tenant, action_key),
    CONSTRAINT person_actions_key_length CHECK (char_length(action_key) BETWEEN 1 AND 1024)
);
CREATE INDEX person_actions_finding ON reconciler.person_actions (tenant, finding_id, at);
COMMENT ON TABLE reconciler.person_actions IS
    'What people did with findings, append-only: also what concerns no operation, whose journal would tell it. The key drops repeats.';

ALTER TABLE reconciler.findings
    ADD COLUMN acknowledged_until timestamptz,
    ADD COLUMN snoozed_until timestamptz,
    ADD COLUMN proposal jsonb,
    ADD CONSTRAINT findings_proposal_is_open CHECK (proposal IS NULL OR state NOT IN ('settled', 'ended'));
-- Those that come back by themselves.
CREATE INDEX findings_waking ON reconciler.findings (tenant, (coalesce(snoozed_until, acknowledged_until)))
    WHERE state IN ('acknowledged', 'snoozed');
COMMENT ON COLUMN reconciler.findings.proposal IS
    'What one person wants done with it, until a second one says the same.';

CREATE TRIGGER person_actions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reconciler.person_actions
    FOR EACH STATEMENT EXECUTE FUNCTION reconciler.refuse_change();

-- +goose Down
-- No function takes rows of these two tables, so none stands in the way.
ALTER TABLE reconciler.findings DROP CONSTRAINT findings_proposal_is_open, DROP COLUMN proposal,
    DROP COLUMN snoozed_until, DROP COLUMN acknowledged_until;
DROP TABLE reconciler.person_actions, reconciler.people;
