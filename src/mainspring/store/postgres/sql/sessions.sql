-- name: open_session
WITH {clock}
INSERT INTO mainspring.sessions (id, name, lease, lease_until, started_at, beat_at, queues, tasks)
SELECT :session, :name, CAST(:lease AS interval), now + CAST(:lease AS interval), now, now, :queues, :tasks
FROM clock
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until;

-- name: beat
WITH {clock}
UPDATE mainspring.sessions
SET lease_until = now + lease, beat_at = now
FROM clock
WHERE id = :session AND lease_until > now
RETURNING id;

-- name: held
SELECT id, fence, wish
FROM mainspring.jobs
WHERE session = :session AND state = 'running';

-- name: lock_session
SELECT id
FROM mainspring.sessions
WHERE id = :session
FOR UPDATE;

-- name: close_session
WITH {clock},
gone AS (
    DELETE FROM mainspring.sessions
    WHERE id = :session
      AND NOT EXISTS (SELECT FROM mainspring.jobs WHERE session = :session AND state = 'running')
    RETURNING id, name, started_at
),
kept AS (
    INSERT INTO mainspring.sessions_done (id, name, started_at, ended_at)
    SELECT id, name, started_at, now
    FROM gone, clock
    ON CONFLICT DO NOTHING
)
SELECT id
FROM gone;

-- name: sessions
WITH {clock}
SELECT id, name, lease, started_at, beat_at, lease_until > now AS alive, queues, tasks
FROM mainspring.sessions, clock
ORDER BY started_at, id;

-- name: prune_sessions
WITH {clock},
old AS MATERIALIZED (
    SELECT id
    FROM mainspring.sessions_done, clock
    WHERE ended_at < now - CAST(:age AS interval)
    LIMIT :limit
    FOR UPDATE OF sessions_done SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.sessions_done
    WHERE id = ANY (ARRAY(SELECT id FROM old))
    RETURNING id
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
