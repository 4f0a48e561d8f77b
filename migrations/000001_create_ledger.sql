-- +goose Up
-- The ledger: operations, what was asked and answered about them, what was
-- concluded, and who must be told.
--
-- tenant is the first column of every key and never changes; a statement names it
-- as an equality with a parameter on every table, so that the same schema can be
-- distributed by tenant. Only bookkeeping of the installation itself has none.

CREATE TABLE reconciler.policies (
    tenant     text        NOT NULL,
    action     text        NOT NULL,
    version    integer     NOT NULL,
    body       jsonb       NOT NULL,
    active     boolean     NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL,
    CONSTRAINT policies_pkey PRIMARY KEY (tenant, action, version),
    CONSTRAINT policies_version_counts CHECK (version > 0),
    CONSTRAINT policies_body_is_object CHECK (jsonb_typeof(body) = 'object')
);
CREATE UNIQUE INDEX policies_one_active ON reconciler.policies (tenant, action) WHERE active;
COMMENT ON TABLE reconciler.policies IS
    'What may be done with the operations of one action. Versions are never edited in place; the functions read the active one.';

CREATE TABLE reconciler.operations (
    tenant         text        NOT NULL,
    operation_id   text        NOT NULL,
    source         text        NOT NULL,
    action         text        NOT NULL,
    target         text        NOT NULL,
    parent         text,
    key            text,
    amount         bigint,
    currency       text,
    state          text        NOT NULL,
    created_at     timestamptz NOT NULL,
    sent_at        timestamptz,
    closed_at      timestamptz,
    effect_id      text,
    account        text,
    mode           text        NOT NULL,
    reference      text,
    "group"        text,
    run            text,
    tool_call      text,
    "case"         text,
    step           bigint,
    error_code     text,
    marks          text[]      NOT NULL DEFAULT '{}',
    metadata       jsonb,
    agent          text,
    request        text,
    request_hash   bytea,
    result         jsonb,
    policy_version integer     NOT NULL,
    version        bigint      NOT NULL DEFAULT 1,
    attempts       integer     NOT NULL DEFAULT 0,
    call           text,
    call_attempts  integer     NOT NULL DEFAULT 0,
    last_class     text,
    in_doubt       boolean     NOT NULL DEFAULT false,
    lease_token    text,
    lease_holder   text,
    lease_until    timestamptz,
    key_expires_at timestamptz,
    unknown_since  timestamptz,
    released       boolean     NOT NULL DEFAULT false,
    retry_at       timestamptz,
    slot           text,
    opened_tx      text,
    chain_seq      bigint      NOT NULL DEFAULT 0,
    chain_head     bytea       NOT NULL DEFAULT ''::bytea,
    CONSTRAINT operations_pkey PRIMARY KEY (tenant, operation_id),
    CONSTRAINT operations_key UNIQUE (tenant, source, key),
    CONSTRAINT operations_id_length CHECK (char_length(operation_id) BETWEEN 1 AND 1024),
    CONSTRAINT operations_target_length CHECK (char_length(target) BETWEEN 1 AND 1024),
    CONSTRAINT operations_key_length CHECK (char_length(key) BETWEEN 1 AND 1024),
    CONSTRAINT operations_amount_positive CHECK (amount > 0),
    CONSTRAINT operations_amount_has_currency CHECK (amount IS NULL OR currency IS NOT NULL),
    CONSTRAINT operations_currency_is_code CHECK (currency ~ '^[A-Z]{3}$'),
    CONSTRAINT operations_state_known CHECK (
        state IN ('pending', 'in_progress', 'unknown', 'manual_review', 'succeeded', 'failed')),
    CONSTRAINT operations_class_known CHECK (
        last_class IN ('succeeded', 'accepted', 'refused', 'not_sent', 'stored_error', 'indeterminate')),
    CONSTRAINT operations_marks_known CHECK (marks <@ ARRAY['key', 'reference']),
    CONSTRAINT operations_created_in_range CHECK (
        created_at >= '2000-01-01 00:00:00+00' AND created_at < '2100-01-01 00:00:00+00'),
    CONSTRAINT operations_sent_in_range CHECK (
        sent_at >= '2000-01-01 00:00:00+00' AND sent_at < '2100-01-01 00:00:00+00'),
    CONSTRAINT operations_closed_in_range CHECK (
        closed_at >= '2000-01-01 00:00:00+00' AND closed_at < '2100-01-01 00:00:00+00'),
    -- An operation in progress without the end of its lease would never be swept.
    CONSTRAINT operations_lease_ends CHECK (state <> 'in_progress' OR lease_until IS NOT NULL),
    -- Whoever moves an operation on ends its lease, so that a late finish is stale.
    CONSTRAINT operations_token_in_progress CHECK (lease_token IS NULL OR state = 'in_progress'),
    -- Alerts and give-up ages count from here.
    CONSTRAINT operations_unknown_since CHECK (state <> 'unknown' OR unknown_since IS NOT NULL),
    CONSTRAINT operations_slot_is_open CHECK (slot IS NULL OR state NOT IN ('succeeded', 'failed')),
    -- A release that lapsed unused stays on an unknown operation, so that it is not granted again.
    CONSTRAINT operations_released_is_open CHECK (NOT released OR state IN ('pending', 'unknown'))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);
-- Of two opens of one intent the database picks one.
CREATE UNIQUE INDEX operations_slot ON reconciler.operations (tenant, slot) WHERE slot IS NOT NULL;
-- Leases that are over.
CREATE INDEX operations_leases ON reconciler.operations (tenant, source, lease_until) WHERE state = 'in_progress';
-- claim_operation by action: the one that waits longest. Of unknown ones only those whose
-- key still serves are worth reading; they are few, however many are stuck.
CREATE INDEX operations_waiting ON reconciler.operations
    (tenant, action, (coalesce(retry_at, created_at)), operation_id) WHERE state = 'pending';
CREATE INDEX operations_repeatable ON reconciler.operations
    (tenant, action, key_expires_at)
    WHERE state IN ('unknown', 'in_progress') AND last_class IS DISTINCT FROM 'stored_error';
-- Gauges count open operations without reading closed ones.
CREATE INDEX operations_open ON reconciler.operations (tenant, source, action, state, unknown_since)
    WHERE state NOT IN ('succeeded', 'failed');
-- Sums of what was done and is open for a target, and suspected duplicates.
CREATE INDEX operations_twins ON reconciler.operations (tenant, action, target, currency, amount);
-- Which operation an effect names, by its id and by its natural reference.
CREATE INDEX operations_effect ON reconciler.operations (tenant, effect_id) WHERE effect_id IS NOT NULL;
CREATE INDEX operations_reference ON reconciler.operations (tenant, reference) WHERE reference IS NOT NULL;
CREATE INDEX operations_group ON reconciler.operations (tenant, "group") WHERE "group" IS NOT NULL;
CREATE INDEX operations_case ON reconciler.operations (tenant, "case", step) WHERE "case" IS NOT NULL;
COMMENT ON TABLE reconciler.operations IS 'One row per business intent, committed before anything is sent.';
COMMENT ON COLUMN reconciler.operations.account IS 'Null: not known, and then no look can say that the effect is absent.';
COMMENT ON COLUMN reconciler.operations.sent_at IS 'Start of the first attempt; null again when that one certainly did nothing.';
COMMENT ON COLUMN reconciler.operations.version IS 'One more at every change of the row by anybody; it guards every conclusion.';
COMMENT ON COLUMN reconciler.operations.in_doubt IS 'Some attempt may have had an effect that nobody reported.';
COMMENT ON COLUMN reconciler.operations.slot IS 'Set while open where the policy allows only one open operation of a kind.';
COMMENT ON COLUMN reconciler.operations.opened_tx IS 'The transaction that opened it, so that a claim before the commit is refused.';
COMMENT ON COLUMN reconciler.operations.chain_head IS 'Hash of the last journal entry.';

CREATE TABLE reconciler.checks (
    tenant          text        NOT NULL,
    operation_id    text        NOT NULL,
    source          text        NOT NULL,
    closed          boolean     NOT NULL DEFAULT false,
    next_check      timestamptz,
    looks           integer     NOT NULL DEFAULT 0,
    blinds          integer     NOT NULL DEFAULT 0,
    rung            integer     NOT NULL DEFAULT 0,
    absent_looks    integer     NOT NULL DEFAULT 0,
    absent_first    timestamptz,
    absent_last     timestamptz,
    absent_look_ids text[]      NOT NULL DEFAULT '{}',
    failures        integer     NOT NULL DEFAULT 0,
    -- No foreign key, here and in journal: rows are written together with their
    -- operation's, operations are never deleted, and the check would cost every call.
    CONSTRAINT checks_pkey PRIMARY KEY (tenant, operation_id),
    -- An open operation that nobody looks at again would be forgotten.
    CONSTRAINT checks_open_has_next CHECK (closed OR next_check IS NOT NULL)
) WITH (
    -- Rewritten at every look: room in the page keeps the updates short.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 1
);
CREATE INDEX checks_due ON reconciler.checks (tenant, source, next_check, operation_id) WHERE NOT closed;
CREATE INDEX checks_due_closed ON reconciler.checks (tenant, source, next_check, operation_id)
    WHERE closed AND next_check IS NOT NULL;
COMMENT ON TABLE reconciler.checks IS 'When an operation is looked at next and what looks found so far; narrow, because it changes at every look.';

CREATE TABLE reconciler.journal (
    tenant       text        NOT NULL,
    operation_id text        NOT NULL,
    seq          bigint      NOT NULL,
    kind         text        NOT NULL,
    at           timestamptz NOT NULL,
    body         text        NOT NULL,
    hash         bytea       NOT NULL,
    CONSTRAINT journal_pkey PRIMARY KEY (tenant, operation_id, seq),
    CONSTRAINT journal_kind_known CHECK (kind IN ('opened', 'attempt_started', 'attempt_finished', 'seen',
        'event', 'decision', 'person', 'release', 'erased')),
    CONSTRAINT journal_hash_length CHECK (octet_length(hash) = 32)
);
CREATE INDEX journal_at ON reconciler.journal (tenant, at);
COMMENT ON TABLE reconciler.journal IS
    'The story of each operation, append-only. hash = sha256(hash of the entry before || body); body is the exact text hashed.';

CREATE TABLE reconciler.looks (
    tenant      text        NOT NULL,
    look_id     text        NOT NULL,
    source      text        NOT NULL,
    method      text        NOT NULL,
    outcome     text        NOT NULL,
    kind        text,
    account     text,
    mode        text,
    effect_id   text,
    key         text,
    reference   text,
    parent      text,
    window_from timestamptz,
    window_to   timestamptz,
    at          timestamptz NOT NULL,
    complete    boolean     NOT NULL,
    calls       integer     NOT NULL DEFAULT 0,
    request_id  text,
    reply_hash  bytea,
    fault       text,
    detail      text,
    found       jsonb       NOT NULL DEFAULT '[]',
    run_id      text,
    CONSTRAINT looks_pkey PRIMARY KEY (tenant, look_id),
    CONSTRAINT looks_method_known CHECK (method IN ('stored', 'event', 'by_id', 'by_reference', 'by_key',
        'list', 'search', 'changes', 'file', 'person')),
    CONSTRAINT looks_outcome_known CHECK (outcome IN ('found', 'absent', 'blind')),
    -- Silence of a look that did not see everything says nothing.
    CONSTRAINT looks_absent_is_complete CHECK (outcome <> 'absent' OR complete)
);
CREATE INDEX looks_at ON reconciler.looks (tenant, source, at);
COMMENT ON TABLE reconciler.looks IS 'One question to a source and its answer, append-only; it belongs to no operation.';

CREATE TABLE reconciler.effects (
    tenant              text        NOT NULL,
    system              text        NOT NULL,
    account             text        NOT NULL,
    mode                text        NOT NULL,
    id                  text        NOT NULL,
    source              text        NOT NULL,
    kind                text        NOT NULL,
    status              text        NOT NULL,
    amount              bigint,
    currency            text,
    parent              text,
    other_parents       text[]      NOT NULL DEFAULT '{}',
    target              text,
    reference           text,
    natural_reference   text,
    key                 text,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz,
    fee                 bigint,
    net                 bigint,
    settlement_amount   bigint,
    settlement_currency text,
    created_by          text,
    failure_reason      text,
    caused_by           text,
    parent_total        bigint,
    metadata            jsonb,
    owner               text,
    needs_read          boolean     NOT NULL DEFAULT false,
    first_seen_at       timestamptz NOT NULL,
    seen_at             timestamptz NOT NULL,
    look_id             text,
    blob_id             text,
    CONSTRAINT effects_pkey PRIMARY KEY (tenant, system, account, mode, id),
    CONSTRAINT effects_status_known CHECK (status IN ('in_flight', 'completed', 'failed', 'reversed')),
    CONSTRAINT effects_currency_is_code CHECK (currency ~ '^[A-Z]{3}$')
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);
-- Probes of an operation's conclusion from what is stored.
CREATE INDEX effects_reference ON reconciler.effects (tenant, reference) WHERE reference IS NOT NULL;
CREATE INDEX effects_key ON reconciler.effects (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX effects_id ON reconciler.effects (tenant, id);
CREATE INDEX effects_owner ON reconciler.effects (tenant, owner) WHERE owner IS NOT NULL;
CREATE INDEX effects_unowned_parent ON reconciler.effects (tenant, parent)
    WHERE owner IS NULL AND parent IS NOT NULL;
CREATE INDEX effects_unowned_other_parents ON reconciler.effects USING gin (other_parents)
    WHERE owner IS NULL AND other_parents <> '{}';
CREATE INDEX effects_unowned ON reconciler.effects (tenant, source, created_at) WHERE owner IS NULL;
COMMENT ON TABLE reconciler.effects IS 'What exists at a provider. Account and mode are part of the identity.';
COMMENT ON COLUMN reconciler.effects.reference IS 'Our operation id or group, as the provider holds it.';
COMMENT ON COLUMN reconciler.effects.owner IS 'The operation or group it is linked to; null while it waits on the shelf.';

CREATE TABLE reconciler.effect_changes (
    tenant    text        NOT NULL,
    system    text        NOT NULL,
    account   text        NOT NULL,
    mode      text        NOT NULL,
    id        text        NOT NULL,
    change_id text        NOT NULL,
    at        timestamptz NOT NULL,
    before    jsonb       NOT NULL,
    after     jsonb       NOT NULL,
    look_id   text,
    CONSTRAINT effect_changes_pkey PRIMARY KEY (tenant, system, account, mode, id, change_id)
);
COMMENT ON TABLE reconciler.effect_changes IS 'Changes of an effect that matter, and observations that were not taken over.';

CREATE TABLE reconciler.matches (
    tenant       text        NOT NULL,
    system       text        NOT NULL,
    account      text        NOT NULL,
    mode         text        NOT NULL,
    effect_id    text        NOT NULL,
    operation_id text        NOT NULL,
    basis        text        NOT NULL,
    certainty    text        NOT NULL,
    role         text        NOT NULL,
    look_id      text,
    at           timestamptz NOT NULL,
    -- One effect belongs to at most one operation.
    CONSTRAINT matches_pkey PRIMARY KEY (tenant, system, account, mode, effect_id),
    CONSTRAINT matches_operation FOREIGN KEY (tenant, operation_id)
        REFERENCES reconciler.operations (tenant, operation_id),
    CONSTRAINT matches_basis_known CHECK (basis IN ('reference', 'effect_id', 'key', 'natural_reference', 'person')),
    -- A suggestion is shown to people and never stored as a link.
    CONSTRAINT matches_certainty_known CHECK (certainty IN ('proof', 'strong')),
    CONSTRAINT matches_role_known CHECK (role IN ('main', 'surplus'))
);
CREATE INDEX matches_by_operation ON reconciler.matches (tenant, operation_id);

CREATE TABLE reconciler.findings (
    tenant        text        NOT NULL,
    finding_id    text        NOT NULL,
    fingerprint   text        NOT NULL,
    kind          text        NOT NULL,
    certainty     text        NOT NULL,
    state         text        NOT NULL,
    source        text        NOT NULL,
    operation_ids text[]      NOT NULL DEFAULT '{}',
    effect_ids    text[]      NOT NULL DEFAULT '{}',
    effects       jsonb       NOT NULL DEFAULT '[]',
    observed      jsonb       NOT NULL DEFAULT '[]',
    reason        text        NOT NULL,
    amount        bigint,
    currency      text,
    opened_at     timestamptz NOT NULL,
    openings      integer     NOT NULL DEFAULT 1,
    ended_at      timestamptz,
    ending        text,
    settled_at    timestamptz,
    settled_by    text,
    settled_as    text,
    version       bigint      NOT NULL DEFAULT 1,
    level         integer     NOT NULL DEFAULT 0,
    assignee      text,
    CONSTRAINT findings_pkey PRIMARY KEY (tenant, finding_id),
    -- Opened again in place, never twice.
    CONSTRAINT findings_fingerprint UNIQUE (tenant, fingerprint),
    CONSTRAINT findings_kind_known CHECK (kind IN ('unresolved', 'missing', 'orphan', 'duplicate', 'mismatch',
        'reversed', 'conflict', 'never_sent', 'failing', 'blind')),
    CONSTRAINT findings_state_known CHECK (state IN ('open', 'acknowledged', 'snoozed', 'settled', 'ended')),
    CONSTRAINT findings_certainty_known CHECK (certainty IN ('proof', 'strong', 'suspected', 'suggestion'))
);
CREATE INDEX findings_open ON reconciler.findings (tenant, kind, opened_at) WHERE state NOT IN ('settled', 'ended');
CREATE INDEX findings_operations ON reconciler.findings USING gin (operation_ids);
COMMENT ON TABLE reconciler.findings IS 'What a person may have to act on; one row per fingerprint for ever.';
COMMENT ON COLUMN reconciler.findings.openings IS 'How often it was opened; notices of each opening are their own.';

CREATE TABLE reconciler.notices (
    tenant       text        NOT NULL,
    notice_id    text        NOT NULL,
    finding_id   text        NOT NULL,
    opening      integer     NOT NULL DEFAULT 1,
    operation_id text,
    step         text        NOT NULL,
    destination  text        NOT NULL,
    reason       text        NOT NULL,
    planned_at   timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    state        text        NOT NULL DEFAULT 'due',
    attempts     integer     NOT NULL DEFAULT 0,
    outcome_unknown boolean  NOT NULL DEFAULT false,
    first_try_at timestamptz,
    claimed_until timestamptz,
    channel      text,
    ts           text,
    last_error   text,
    delivered_at timestamptz,
    CONSTRAINT notices_pkey PRIMARY KEY (tenant, notice_id),
    CONSTRAINT notices_once UNIQUE (tenant, finding_id, opening, step, destination),
    CONSTRAINT notices_finding FOREIGN KEY (tenant, finding_id)
        REFERENCES reconciler.findings (tenant, finding_id),
    CONSTRAINT notices_state_known CHECK (state IN ('due', 'delivered', 'undelivered')),
    CONSTRAINT notices_delivered_at CHECK (state <> 'delivered' OR delivered_at IS NOT NULL)
);
CREATE INDEX notices_due ON reconciler.notices (tenant, due_at) WHERE state <> 'delivered';
CREATE INDEX notices_operation ON reconciler.notices (tenant, operation_id, destination) WHERE operation_id IS NOT NULL;
COMMENT ON TABLE reconciler.notices IS 'The outbox: messages that somebody must get, once per finding, step and destination.';
COMMENT ON COLUMN reconciler.notices.outcome_unknown IS 'An earlier try may have reached the destination.';

CREATE TABLE reconciler.runs (
    tenant       text        NOT NULL,
    run_id       text        NOT NULL,
    name         text        NOT NULL,
    tick         text,
    holder       text        NOT NULL,
    token        text        NOT NULL,
    lease_until  timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    outcome      text,
    counts       jsonb,
    error        text,
    CONSTRAINT runs_pkey PRIMARY KEY (tenant, run_id),
    -- A tick is run once, by whichever replica comes first; a manual run has none.
    CONSTRAINT runs_tick UNIQUE (tenant, name, tick),
    CONSTRAINT runs_outcome_known CHECK (outcome IN ('done', 'failed', 'abandoned')),
    CONSTRAINT runs_finished_has_outcome CHECK ((finished_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX runs_one_at_a_time ON reconciler.runs (tenant, name) WHERE finished_at IS NULL;
CREATE INDEX runs_newest ON reconciler.runs (tenant, name, started_at);

CREATE TABLE reconciler.source_state (
    tenant      text        NOT NULL,
    source      text        NOT NULL,
    holder      text,
    token       bigint      NOT NULL DEFAULT 0,
    held_since  timestamptz,
    lease_until timestamptz,
    blind_since timestamptz,
    blinds      integer     NOT NULL DEFAULT 0,
    probe_at    timestamptz,
    CONSTRAINT source_state_pkey PRIMARY KEY (tenant, source)
);
COMMENT ON COLUMN reconciler.source_state.token IS 'Grows with every holder; an earlier one is told apart however late it wakes.';

CREATE TABLE reconciler.coverage (
    tenant      text        NOT NULL,
    look_id     text        NOT NULL,
    source      text        NOT NULL,
    kind        text        NOT NULL,
    account     text        NOT NULL,
    mode        text        NOT NULL,
    window_from timestamptz NOT NULL,
    window_to   timestamptz NOT NULL,
    at          timestamptz NOT NULL,
    CONSTRAINT coverage_pkey PRIMARY KEY (tenant, look_id, kind, account, mode),
    CONSTRAINT coverage_window CHECK (window_from < window_to)
);
CREATE INDEX coverage_recent ON reconciler.coverage (tenant, source, at);
COMMENT ON TABLE reconciler.coverage IS 'Which range was listed completely, when: it answers for every operation in it.';

CREATE TABLE reconciler.blobs (
    tenant    text  NOT NULL,
    id        text  NOT NULL,
    salt      bytea,
    bytes     bytea,
    erased_at timestamptz,
    CONSTRAINT blobs_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT blobs_erased CHECK ((bytes IS NULL) = (salt IS NULL) AND (bytes IS NOT NULL OR erased_at IS NOT NULL))
);
COMMENT ON TABLE reconciler.blobs IS
    'Provider objects as they came, reduced to an allow-list. Chains hold sha256(salt || bytes), so erasing breaks none.';

-- +goose StatementBegin
CREATE FUNCTION reconciler.check_transition() RETURNS trigger
LANGUAGE plpgsql SET search_path = reconciler, pg_temp AS $$
-- The one home of the table of legal changes in SQL; recon.Legal is its twin in Go.
BEGIN
    IF (OLD.state = 'pending'           AND NEW.state IN ('in_progress', 'succeeded', 'failed', 'unknown', 'manual_review'))
        OR (OLD.state = 'in_progress'   AND NEW.state IN ('succeeded', 'failed', 'unknown', 'pending'))
        OR (OLD.state = 'unknown'       AND NEW.state IN ('in_progress', 'succeeded', 'failed', 'pending', 'manual_review'))
        OR (OLD.state = 'manual_review' AND NEW.state IN ('succeeded', 'failed', 'unknown', 'pending'))
        OR (OLD.state = 'succeeded'     AND NEW.state = 'manual_review')
        OR (OLD.state = 'failed'        AND NEW.state IN ('succeeded', 'unknown', 'manual_review'))
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'operation %: % may not become %', OLD.operation_id, OLD.state, NEW.state
        USING ERRCODE = 'check_violation',
            HINT = 'The legal changes of state are listed in recon.Legal; read the row again before changing it.';
END $$;

CREATE FUNCTION reconciler.refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = reconciler, pg_temp AS $$
-- FOR EACH STATEMENT, so that it refuses also where no row is hit, and a superuser too.
BEGIN
    RAISE EXCEPTION 'evidence is append-only: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege',
            HINT = 'Insert a new entry instead; personal data is erased from blobs, which no chain contains.';
END $$;
-- +goose StatementEnd

CREATE TRIGGER operations_transition BEFORE UPDATE ON reconciler.operations
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION reconciler.check_transition();
CREATE TRIGGER journal_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reconciler.journal
    FOR EACH STATEMENT EXECUTE FUNCTION reconciler.refuse_change();
CREATE TRIGGER looks_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON reconciler.looks
    FOR EACH STATEMENT EXECUTE FUNCTION reconciler.refuse_change();

-- +goose Down
-- The functions that are applied after the migrations go first: some take rows of
-- these tables.
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'reconciler'::regnamespace
            AND p.proname NOT IN ('check_transition', 'refuse_change')
        ORDER BY p.proname
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', f);
    END LOOP;
END $$;
-- +goose StatementEnd
DROP TABLE reconciler.blobs, reconciler.coverage, reconciler.source_state, reconciler.runs,
    reconciler.notices, reconciler.findings, reconciler.matches, reconciler.effect_changes,
    reconciler.effects, reconciler.looks, reconciler.journal, reconciler.checks,
    reconciler.operations, reconciler.policies;
DROP TABLE IF EXISTS reconciler.simulated_time;
DROP FUNCTION reconciler.check_transition(), reconciler.refuse_change();
