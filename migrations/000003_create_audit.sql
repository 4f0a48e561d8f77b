-- +goose Up
-- The audit: how far each list of a provider was read, and the orders in which an audit
-- walks through a window.

CREATE TABLE reconciler.audit_lists (
    tenant      text        NOT NULL,
    source      text        NOT NULL,
    kind        text        NOT NULL,
    account     text        NOT NULL,
    mode        text        NOT NULL,
    complete_to timestamptz,
    window_from timestamptz,
    window_to   timestamptz,
    cursor      text,
    began_at    timestamptz,
    CONSTRAINT audit_lists_pkey PRIMARY KEY (tenant, source, kind, account, mode),
    CONSTRAINT audit_lists_window CHECK (window_from < window_to),
    CONSTRAINT audit_lists_under_way CHECK ((window_from IS NULL) = (window_to IS NULL)
        AND (window_from IS NULL) = (began_at IS NULL) AND (cursor IS NULL OR window_from IS NOT NULL))
);
COMMENT ON TABLE reconciler.audit_lists IS
    'How far a source''s list of one kind, account and mode was read. A list that broke off goes on at its cursor.';
COMMENT ON COLUMN reconciler.audit_lists.complete_to IS
    'Everything created before was listed, without a gap since the first audit. It never runs ahead of what the provider shows.';
COMMENT ON COLUMN reconciler.audit_lists.began_at IS 'When the first page of the list under way was asked for.';

CREATE INDEX operations_created ON reconciler.operations (tenant, source, created_at, operation_id);
CREATE INDEX effects_created ON reconciler.effects (tenant, source, created_at);
-- What hangs under one object: what gave an effect back, and a parent's own total.
CREATE INDEX effects_parent ON reconciler.effects (tenant, parent) WHERE parent IS NOT NULL;
CREATE INDEX effects_failed ON reconciler.effects (tenant, source, created_at) WHERE status = 'failed';
-- Findings of several operations or of none, which no operation's judgement ends.
CREATE INDEX findings_of_source ON reconciler.findings (tenant, source, kind) WHERE state NOT IN ('settled', 'ended');

-- +goose Down
DROP INDEX reconciler.findings_of_source, reconciler.effects_failed, reconciler.effects_parent, reconciler.effects_created, reconciler.operations_created;
DROP TABLE reconciler.audit_lists;
