-- Those with a fair key are only named: they are given their turn first.
-- name: promote
SELECT queue, CASE WHEN fair IS NOT NULL THEN id END AS job_id
FROM mainspring_jobs
{due_now};

UPDATE mainspring_jobs
SET state = 'ready', signal = NULL
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_jobs
    {due_now}
) AND fair IS NULL;

-- name: next_due
SELECT run_at - :now AS wait_us
FROM mainspring_jobs
WHERE {waits_for_its_time}
ORDER BY run_at
LIMIT 1;

-- name: next_expiry
SELECT expires_at - :now AS wait_us
FROM mainspring_jobs
WHERE expires_at IS NOT NULL AND state <> 'running'
ORDER BY expires_at
LIMIT 1;

-- name: lock_expired
SELECT {live}
FROM mainspring_jobs
WHERE state <> 'running' AND expires_at <= :now
ORDER BY expires_at
LIMIT :limit;

-- A lease that seems to end later than a whole lease from now was written before the machine rebooted.
-- name: dead_sessions
SELECT id
FROM mainspring_sessions
WHERE lease_until <= :steady OR lease_until > :steady + lease
ORDER BY lease_until;

-- name: lock_dead_session
SELECT name, lease
FROM mainspring_sessions
WHERE id = :session AND (lease_until <= :steady OR lease_until > :steady + lease);

-- name: lock_held
SELECT {live}
FROM mainspring_jobs
WHERE session = :session AND state = 'running'
LIMIT :limit;

-- Whole days only, in both dialects: a day goes when its last moment is older than the age.
-- Differs from PostgreSQL: no partitions to drop, so rows go in batches that hold the write lock briefly.
-- name: prune_jobs
DELETE FROM mainspring_jobs_done
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_jobs_done AS done
    WHERE finished_at < (:now - :age) / 86400000000 * 86400000000
      AND NOT EXISTS (SELECT 1 FROM mainspring_jobs AS root WHERE root.id = done.workflow)
      AND NOT EXISTS (SELECT 1 FROM mainspring_jobs_done AS root WHERE root.id = done.workflow)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: prune_attempts
DELETE FROM mainspring_attempts
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_attempts
    WHERE finished_at < (:now - :age) / 86400000000 * 86400000000
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: prune_logs
DELETE FROM mainspring_logs
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_logs
    WHERE at < (:now - :age) / 86400000000 * 86400000000
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: prune_ticks
DELETE FROM mainspring_ticks
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_ticks
    ORDER BY rowid
    LIMIT :limit
) AND decided_at < (:now - :age) / 86400000000 * 86400000000;

SELECT changes() AS pruned
WHERE changes() > 0;
