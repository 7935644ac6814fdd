-- name: lock_audit
SELECT :now AS now_at, entries, hash
FROM mainspring_audit_head;

-- name: extend_audit
INSERT INTO mainspring_audit (seq, id, at, actor, team, action, target, details, hash)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
       value ->> 8
FROM json_each(:records);

UPDATE mainspring_audit_head
SET entries = :entries, hash = :hash;

-- name: audited
SELECT seq
FROM mainspring_audit
WHERE id = :entry;

-- name: audit_head
SELECT entries, hash
FROM mainspring_audit_head;

-- name: walk_audit
SELECT {entry}
FROM mainspring_audit
WHERE seq > :after
ORDER BY seq
LIMIT :limit;

-- name: page_audit
SELECT {entry}
FROM mainspring_audit
WHERE seq < coalesce(:before, 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;

-- name: page_audit_of
SELECT {entry}
FROM mainspring_audit
WHERE team = :team AND seq < coalesce(:before, 9223372036854775807)
ORDER BY seq DESC
LIMIT :limit;
