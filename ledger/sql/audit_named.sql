-- The operations that effects name: by reference, key, effect id or natural reference.
-- Matchers say which of them an effect belongs to. An index probe each.
-- $1 tenant  $2 references  $3 keys  $4 effect ids  $5 natural references  $6 most
SELECT o.operation_id FROM reconciler.operations o WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])
UNION
SELECT o.operation_id FROM reconciler.operations o WHERE o.tenant = $1 AND o."group" = ANY ($2::text[])
UNION
SELECT o.operation_id
FROM (SELECT DISTINCT p.body ->> 'source' AS source FROM reconciler.policies p WHERE p.tenant = $1) s
JOIN reconciler.operations o ON o.tenant = $1 AND o.source = s.source AND o.key = ANY ($3::text[])
UNION
SELECT o.operation_id FROM reconciler.operations o WHERE o.tenant = $1 AND o.effect_id = ANY ($4::text[])
UNION
SELECT o.operation_id FROM reconciler.operations o WHERE o.tenant = $1 AND o.reference = ANY ($5::text[])
ORDER BY operation_id
LIMIT $6
