-- Take the keys that are free, and say who has each.
-- name: take_idempotency
WITH {idempotency_asked}
INSERT INTO mainspring_idempotency (key, job_id, ttl, look_at)
SELECT key, job_id, ttl, {idempotency_look}
FROM asked
WHERE TRUE
ON CONFLICT (key) DO NOTHING;

SELECT key, job_id
FROM mainspring_idempotency
WHERE key IN (SELECT value ->> 0 FROM json_each(:asked));

-- name: find_idempotency
SELECT key
FROM mainspring_idempotency
WHERE key IN (SELECT value FROM json_each(:keys)) AND {idempotency_in_force};

-- name: keep_idempotency
WITH {idempotency_asked}
UPDATE mainspring_idempotency
SET job_id = asked.job_id, ttl = asked.ttl, look_at = :now + max(asked.ttl, 60000000)
FROM asked
WHERE mainspring_idempotency.key = asked.key;

-- Rows whose time to be looked at has come: those in force get a later one, the others go. Says whether some are left.
-- name: prune_idempotency
UPDATE mainspring_idempotency
SET look_at = coalesce(
        (SELECT done.finished_at + ttl FROM mainspring_jobs_done AS done WHERE done.id = job_id), {idempotency_look})
WHERE {idempotency_due} AND {idempotency_in_force};

DELETE FROM mainspring_idempotency
WHERE {idempotency_due} AND NOT {idempotency_in_force};

SELECT 1 AS due
FROM mainspring_idempotency
WHERE look_at <= :now
LIMIT 1;
