-- +goose Up
-- The inbox: what providers tell by themselves. An event is stored before it is
-- answered; what it shows is taken in afterwards, as often as it takes.

CREATE TABLE reconciler.events (
    tenant           text        NOT NULL,
    system           text        NOT NULL,
    account          text        NOT NULL,
    mode             text        NOT NULL,
    id               text        NOT NULL,
    source           text        NOT NULL,
    type             text        NOT NULL,
    signed           boolean     NOT NULL,
    created_at       timestamptz NOT NULL,
    received_at      timestamptz NOT NULL,
    last_received_at timestamptz NOT NULL,
    deliveries       integer     NOT NULL,
    state            text        NOT NULL,
    attempts         integer     NOT NULL DEFAULT 0,
    next_try         timestamptz NOT NULL,
    last_error       text,
    done_at          timestamptz,
    blob_id          text,
    about            text[]      NOT NULL DEFAULT '{}',
    body_hash        bytea       NOT NULL,
    CONSTRAINT events_pkey PRIMARY KEY (tenant, system, account, mode, id),
    CONSTRAINT events_state_known CHECK (state IN ('new', 'waiting', 'done', 'failed', 'ignored')),
    CONSTRAINT events_created_in_range CHECK (
        created_at >= '2000-01-01 00:00:00+00' AND created_at < '2100-01-01 00:00:00+00'),
    CONSTRAINT events_hash_length CHECK (octet_length(body_hash) = 32),
    CONSTRAINT events_done_at CHECK (state <> 'done' OR done_at IS NOT NULL)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);
-- What is to be taken in.
CREATE INDEX events_due ON reconciler.events (tenant, source, next_try) WHERE state IN ('new', 'waiting');
-- What a person lists, and what was given up.
CREATE INDEX events_received ON reconciler.events (tenant, received_at);
CREATE INDEX events_failed ON reconciler.events (tenant, received_at) WHERE state = 'failed';
-- Bytes that are dropped when they are old.
CREATE INDEX events_raw ON reconciler.events (tenant, received_at) WHERE blob_id IS NOT NULL;
-- Bytes that are erased with what they are about.
CREATE INDEX events_about ON reconciler.events USING gin (about) WHERE blob_id IS NOT NULL;
COMMENT ON COLUMN reconciler.events.about IS 'Ids of the objects and references that it told of, known once it was taken in.';
COMMENT ON TABLE reconciler.events IS 'What providers told, once each. The bytes as they came are in blobs; body_hash is sha256(salt || bytes).';
COMMENT ON COLUMN reconciler.events.deliveries IS 'How often it was delivered; 0: it was never delivered and was read from the provider''s list of events.';
COMMENT ON COLUMN reconciler.events.state IS
    'new: to be taken in; waiting: that failed and is tried again at next_try; failed: given up; ignored: of an account or mode that is not the source''s.';
COMMENT ON COLUMN reconciler.events.blob_id IS 'Null: the bytes were dropped or erased.';

CREATE TABLE reconciler.feeds (
    tenant      text        NOT NULL,
    source      text        NOT NULL,
    account     text        NOT NULL,
    mode        text        NOT NULL,
    read_to     timestamptz NOT NULL,
    window_to   timestamptz,
    cursor      text,
    CONSTRAINT feeds_pkey PRIMARY KEY (tenant, source, account, mode),
    CONSTRAINT feeds_cursor_in_window CHECK ((cursor IS NULL) = (window_to IS NULL))
);
COMMENT ON TABLE reconciler.feeds IS 'How far a provider''s list of events was read. A window that broke off goes on at its cursor.';

CREATE TABLE reconciler.wanted (
    tenant    text        NOT NULL,
    source    text        NOT NULL,
    kind      text        NOT NULL,
    account   text        NOT NULL,
    mode      text        NOT NULL,
    effect_id text        NOT NULL,
    parent    text        NOT NULL,
    made_from timestamptz NOT NULL,
    since     timestamptz NOT NULL,
    attempts  integer     NOT NULL DEFAULT 0,
    next_try  timestamptz NOT NULL,
    CONSTRAINT wanted_pkey PRIMARY KEY (tenant, source, kind, account, mode, effect_id, parent),
    CONSTRAINT wanted_names_something CHECK (effect_id <> '' OR parent <> '')
);
CREATE INDEX wanted_due ON reconciler.wanted (tenant, source, next_try);
COMMENT ON TABLE reconciler.wanted IS 'Objects that an event told of without showing them: the next sweep of their source reads them.';

-- The bytes of an effect, older ones too, are found to be erased.
ALTER TABLE reconciler.blobs ADD COLUMN about text;
CREATE INDEX blobs_about ON reconciler.blobs (tenant, about) WHERE about IS NOT NULL AND bytes IS NOT NULL;
COMMENT ON COLUMN reconciler.blobs.about IS 'The effect that the bytes show: system, account, mode and id, a space between; null for events.';

-- Effects of which two tellings disagree: the next sweep reads them.
CREATE INDEX effects_needs_read ON reconciler.effects (tenant, source, system, account, mode, id) WHERE needs_read;

-- +goose Down
DROP INDEX reconciler.effects_needs_read;
ALTER TABLE reconciler.blobs DROP COLUMN about;
DROP TABLE reconciler.wanted, reconciler.feeds, reconciler.events;
