-- +goose Up
-- An invoice that came by mail and by portal is two operations whose natural references are
-- written in two ways. Those that may be one, whatever their case, spaces, signs and zeros,
-- are found by what is left of them; rules say which are.
CREATE INDEX operations_reference_folded ON reconciler.operations
    (tenant, (regexp_replace(lower(normalize(reference, NFKC) COLLATE "C"), '[^a-z1-9]', '', 'g'))) WHERE reference IS NOT NULL;

-- +goose Down
DROP INDEX reconciler.operations_reference_folded;
