-- +goose Up
-- Groups: one effect that stands for several operations, and several effects for one.

ALTER TABLE reconciler.matches
    ALTER COLUMN operation_id DROP NOT NULL,
    ADD COLUMN "group" text,
    ADD CONSTRAINT matches_one_owner CHECK ((operation_id IS NULL) <> ("group" IS NULL));
CREATE INDEX matches_by_group ON reconciler.matches (tenant, "group") WHERE "group" IS NOT NULL;
COMMENT ON COLUMN reconciler.matches."group" IS
    'The declared group that the effect stands for; what of it is each operation''s share stands in allocations.';

CREATE TABLE reconciler.allocations (
    tenant       text        NOT NULL,
    system       text        NOT NULL,
    account      text        NOT NULL,
    mode         text        NOT NULL,
    effect_id    text        NOT NULL,
    operation_id text        NOT NULL,
    amount       bigint      NOT NULL,
    at           timestamptz NOT NULL,
    CONSTRAINT allocations_pkey PRIMARY KEY (tenant, system, account, mode, effect_id, operation_id),
    CONSTRAINT allocations_operation FOREIGN KEY (tenant, operation_id)
        REFERENCES reconciler.operations (tenant, operation_id),
    CONSTRAINT allocations_amount_positive CHECK (amount > 0)
);
CREATE INDEX allocations_by_operation ON reconciler.allocations (tenant, operation_id);
COMMENT ON TABLE reconciler.allocations IS
    'What of a group''s effect is the share of each operation, in minor units. The shares of an effect add up to its amount exactly, which is checked under the effect''s row lock.';

-- +goose Down
DROP TABLE reconciler.allocations;
DELETE FROM reconciler.matches m WHERE m.operation_id IS NULL;
DROP INDEX reconciler.matches_by_group;
ALTER TABLE reconciler.matches DROP CONSTRAINT matches_one_owner, DROP COLUMN "group",
    ALTER COLUMN operation_id SET NOT NULL;
