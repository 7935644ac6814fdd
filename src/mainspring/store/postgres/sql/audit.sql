-- Whoever writes holds the end of the chain until he has committed, which is soon.
-- name: lock_audit
WITH {clock}
SELECT now AS now_at, entries, hash
FROM mainspring.audit_head, clock
FOR UPDATE OF audit_head;

-- name: extend_audit
WITH written AS (
    INSERT INTO mainspring.audit (seq, id, at, actor, team, action, target, details, hash)
    SELECT CAST(fields ->> 0 AS bigint), CAST(fields ->> 1 AS uuid),
           timestamptz 'epoch' + CAST(fields ->> 2 AS bigint) * interval '1 microsecond',
           fields ->> 3, fields ->> 4, fields ->> 5, fields ->> 6, fields ->> 7, fields ->> 8
    FROM jsonb_array_elements(CAST(:records AS jsonb)) AS record (fields)
)
UPDATE mainspring.audit_head
SET entries = :entries, hash = :hash;

-- name: audited
SELECT seq
FROM mainspring.audit
WHERE id = :entry;

-- name: audit_head
SELECT entries, hash
FROM mainspring.audit_head;

-- name: walk_audit
SELECT {entry}
FROM mainspring.audit
WHERE seq > :after
ORDER BY seq
LIMIT :limit;

-- name: page_audit
SELECT {entry}
FROM mainspring.audit
WHERE seq < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;

-- name: page_audit_of
SELECT {entry}
FROM mainspring.audit
WHERE team = :team AND seq < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;
