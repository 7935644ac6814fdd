-- Those with a fair key are only named: they are given their turn first. The limit is hidden from the planner as in claim,
-- so that it walks the index and does not sort all that is due.
-- name: promote
WITH {clock},
due AS MATERIALIZED (
    SELECT id, queue, fair
    FROM mainspring.jobs
    WHERE {waits_for_its_time} AND run_at <= (SELECT now + CAST(:ahead AS interval) FROM clock)
    ORDER BY run_at
    LIMIT (SELECT CAST(:limit AS bigint))
    FOR UPDATE SKIP LOCKED
),
promoted AS (
    UPDATE mainspring.jobs
    SET state = 'ready', signal = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM due WHERE fair IS NULL))
)
SELECT queue, CASE WHEN fair IS NOT NULL THEN id END AS job_id
FROM due;

-- name: next_due
WITH {clock}
SELECT (extract(epoch FROM run_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.jobs, clock
WHERE {waits_for_its_time}
ORDER BY run_at
LIMIT 1;

-- name: next_expiry
WITH {clock}
SELECT (extract(epoch FROM expires_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.jobs, clock
WHERE expires_at IS NOT NULL AND state <> 'running'
ORDER BY expires_at
LIMIT 1;

-- The limit is hidden from the planner, as in promote.
-- name: lock_expired
WITH {clock},
expired AS MATERIALIZED (
    SELECT {live}
    FROM mainspring.jobs
    WHERE state <> 'running' AND expires_at <= (SELECT now FROM clock)
    ORDER BY expires_at
    LIMIT (SELECT CAST(:limit AS bigint))
    FOR UPDATE SKIP LOCKED
)
SELECT *
FROM expired;

-- name: dead_sessions
WITH {clock}
SELECT id
FROM mainspring.sessions, clock
WHERE lease_until <= now
ORDER BY lease_until;

-- Reaping is itself a claim: two reapers never take the same session, and one that is just claiming is left
-- for the next sweep.
-- name: lock_dead_session
WITH {clock}
SELECT name, lease
FROM mainspring.sessions, clock
WHERE id = :session AND lease_until <= now
FOR UPDATE OF sessions SKIP LOCKED;

-- In the order in which settles lock; picked first, because ORDER BY with LIMIT would tempt the planner to walk the
-- primary key.
-- name: lock_held
WITH picked AS MATERIALIZED (
    SELECT id
    FROM mainspring.jobs
    WHERE session = :session AND state = 'running'
    LIMIT :limit
)
SELECT {live}
FROM mainspring.jobs
WHERE id = ANY (ARRAY(SELECT id FROM picked)) AND session = :session AND state = 'running'
ORDER BY id
FOR UPDATE;

-- Whole days only, in both dialects: a day goes when its last moment is older than the age.
-- Differs from SQLite: a call drops one day, so the limit has no work to do.
-- name: prune_jobs
WITH {clock}
SELECT mainspring.drop_day('jobs_done', CAST((now - CAST(:age AS interval)) AT TIME ZONE 'UTC' AS date))
FROM clock
LIMIT :limit;

-- name: prune_attempts
WITH {clock}
SELECT mainspring.drop_day('attempts', CAST((now - CAST(:age AS interval)) AT TIME ZONE 'UTC' AS date))
FROM clock
LIMIT :limit;

-- name: prune_logs
WITH {clock}
SELECT mainspring.drop_day('logs', CAST((now - CAST(:age AS interval)) AT TIME ZONE 'UTC' AS date))
FROM clock
LIMIT :limit;

-- name: prune_ticks
WITH {clock},
old AS MATERIALIZED (
    SELECT ctid
    FROM mainspring.ticks, clock
    WHERE decided_at < date_trunc('day', now - CAST(:age AS interval), 'UTC')
    LIMIT :limit
    FOR UPDATE OF ticks SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.ticks
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
    RETURNING schedule
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
