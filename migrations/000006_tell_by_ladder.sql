-- +goose Up
-- Who is told, step by step: findings say when their notices are planned next, many of
-- them may be told as one incident, and a notice is about a finding, an incident or a day.

CREATE TABLE reconciler.incidents (
    tenant      text        NOT NULL,
    incident_id text        NOT NULL,
    source      text        NOT NULL,
    kind        text        NOT NULL,
    actions     text[]      NOT NULL DEFAULT '{}',
    opened_at   timestamptz NOT NULL,
    joined_at   timestamptz NOT NULL,
    full_at     timestamptz,
    up_since    timestamptz,
    ended_at    timestamptz,
    total       integer,
    left_open   integer,
    level       integer     NOT NULL DEFAULT 0,
    shown       text,
    plan_at     timestamptz,
    CONSTRAINT incidents_pkey PRIMARY KEY (tenant, incident_id),
    CONSTRAINT incidents_ended_is_full CHECK (ended_at IS NULL OR full_at IS NOT NULL)
);
-- One takes in at a time: whoever comes second joins it.
CREATE UNIQUE INDEX incidents_taking_in ON reconciler.incidents (tenant, source, kind) WHERE full_at IS NULL;
CREATE INDEX incidents_to_plan ON reconciler.incidents (tenant, plan_at) WHERE plan_at IS NOT NULL;
COMMENT ON TABLE reconciler.incidents IS
    'Many findings told as one message: of one kind at one source at once, or waiting for a source that is down.';
COMMENT ON COLUMN reconciler.incidents.left_open IS
    'How many of its findings were still open when it ended, and are told by themselves since; total: how many it told.';
COMMENT ON COLUMN reconciler.incidents.full_at IS 'Since when it takes in no more findings; null: it still does.';

ALTER TABLE reconciler.findings
    ADD COLUMN planned_version bigint NOT NULL DEFAULT 0,
    ADD COLUMN plan_at timestamptz,
    ADD COLUMN incident_id text,
    ADD CONSTRAINT findings_incident FOREIGN KEY (tenant, incident_id)
        REFERENCES reconciler.incidents (tenant, incident_id);
-- A change that is written is one that gets planned, whoever wrote it and however it
-- ended afterwards: the version itself is what asks for it.
CREATE INDEX findings_changed ON reconciler.findings (tenant, finding_id) WHERE planned_version <> version;
CREATE INDEX findings_to_plan ON reconciler.findings (tenant, plan_at) WHERE plan_at IS NOT NULL;
CREATE INDEX findings_of_incident ON reconciler.findings (tenant, incident_id) WHERE incident_id IS NOT NULL;
COMMENT ON COLUMN reconciler.findings.planned_version IS 'The version whose notices were planned; another one asks for planning.';
COMMENT ON COLUMN reconciler.findings.plan_at IS 'When its notices are planned again by the passing of time; null: when it changes.';

ALTER TABLE reconciler.notices
    ALTER COLUMN finding_id DROP NOT NULL,
    ADD COLUMN incident_id text,
    ADD COLUMN subject text,
    ADD COLUMN act text NOT NULL DEFAULT 'tell',
    ADD COLUMN mention text[] NOT NULL DEFAULT '{}',
    ADD COLUMN refused text,
    ADD COLUMN edition integer NOT NULL DEFAULT 1,
    ADD COLUMN root boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT notices_act_known CHECK (act IN ('tell', 'edit')),
    ADD CONSTRAINT notices_incident FOREIGN KEY (tenant, incident_id)
        REFERENCES reconciler.incidents (tenant, incident_id);
UPDATE reconciler.notices SET subject = finding_id, act = CASE step WHEN 'ended' THEN 'edit' ELSE 'tell' END,
    root = step = 'first' AND ts IS NOT NULL;
ALTER TABLE reconciler.notices
    ALTER COLUMN subject SET NOT NULL,
    DROP CONSTRAINT notices_once,
    ADD CONSTRAINT notices_once UNIQUE (tenant, subject, opening, step, destination);
COMMENT ON COLUMN reconciler.notices.subject IS 'The id of the finding or incident that it is about, or the name of a digest.';
COMMENT ON COLUMN reconciler.notices.edition IS 'How often it was asked for: of several changes of one message the newest is made.';
COMMENT ON COLUMN reconciler.notices.root IS 'It posted a message of its own, which later ones of its subject edit and answer.';
COMMENT ON COLUMN reconciler.notices.refused IS 'The destination that would not take it, for which this one stands in.';

-- +goose Down
DELETE FROM reconciler.notices WHERE finding_id IS NULL OR act = 'edit' AND step <> 'ended';
ALTER TABLE reconciler.notices
    DROP CONSTRAINT notices_once, DROP CONSTRAINT notices_act_known, DROP CONSTRAINT notices_incident,
    DROP COLUMN incident_id, DROP COLUMN subject, DROP COLUMN act, DROP COLUMN mention, DROP COLUMN refused,
    DROP COLUMN edition, DROP COLUMN root,
    ALTER COLUMN finding_id SET NOT NULL,
    ADD CONSTRAINT notices_once UNIQUE (tenant, finding_id, opening, step, destination);
ALTER TABLE reconciler.findings
    DROP CONSTRAINT findings_incident, DROP COLUMN incident_id, DROP COLUMN plan_at, DROP COLUMN planned_version;
DROP TABLE reconciler.incidents;
