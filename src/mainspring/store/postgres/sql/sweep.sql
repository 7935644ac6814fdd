-- name: promote
WITH {clock},
due AS MATERIALIZED (
    SELECT id
    FROM mainspring.jobs
    WHERE state IN ('scheduled', 'retrying') AND run_at <= (SELECT now FROM clock)
    ORDER BY run_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE mainspring.jobs
SET state = 'ready'
WHERE id = ANY (ARRAY(SELECT id FROM due))
RETURNING queue;

-- name: next_due
WITH {clock}
SELECT (extract(epoch FROM run_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.jobs, clock
WHERE state IN ('scheduled', 'retrying')
ORDER BY run_at
LIMIT 1;

-- Reaping is itself a claim: two reapers never take the same session, and one that is just claiming is left
-- for the next sweep.
-- name: dead_session
WITH {clock}
SELECT id, name, lease
FROM mainspring.sessions, clock
WHERE lease_until <= now
ORDER BY lease_until
LIMIT 1
FOR UPDATE OF sessions SKIP LOCKED;

-- name: lock_held
SELECT {live}
FROM mainspring.jobs
WHERE session = :session AND state = 'running'
LIMIT :limit
FOR UPDATE;

-- name: drop_session
DELETE FROM mainspring.sessions
WHERE id = :session;

-- Whole days only, in both dialects: a day goes when its last moment is older than the age.
-- Differs from SQLite: days are dropped whole, so the limit has no work to do.
-- name: prune_jobs
WITH {clock}
SELECT mainspring.drop_days('jobs_done', CAST((now - CAST(:age AS interval)) AT TIME ZONE 'UTC' AS date))
FROM clock
LIMIT :limit;

-- name: prune_attempts
WITH {clock}
SELECT mainspring.drop_days('attempts', CAST((now - CAST(:age AS interval)) AT TIME ZONE 'UTC' AS date))
FROM clock
LIMIT :limit;
