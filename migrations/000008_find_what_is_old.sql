-- +goose Up
-- Housekeeping finds what is old without reading what is not, nor what it dropped before.
CREATE INDEX operations_requests ON reconciler.operations (tenant, closed_at)
    WHERE request IS NOT NULL AND state IN ('succeeded', 'failed');
CREATE INDEX blobs_kept ON reconciler.blobs (tenant, id) WHERE bytes IS NOT NULL AND about IS NOT NULL;

-- +goose Down
DROP INDEX reconciler.blobs_kept;
DROP INDEX reconciler.operations_requests;
