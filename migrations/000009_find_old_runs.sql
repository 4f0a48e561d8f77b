-- +goose Up
-- Housekeeping finds the runs that it drops without reading those that it keeps.
CREATE INDEX runs_old ON reconciler.runs (tenant, finished_at)
    WHERE finished_at IS NOT NULL AND tallied AND name NOT LIKE 'audit/%' AND name NOT LIKE 'report%';

-- +goose Down
DROP INDEX reconciler.runs_old;
