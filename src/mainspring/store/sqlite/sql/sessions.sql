-- A lease that seems to end later than a whole lease from now was written before the machine rebooted.
-- name: open_session
INSERT INTO mainspring_sessions (id, name, lease, lease_until, started_at, beat_at, queues, tasks)
VALUES (:session, :name, :lease, :steady + :lease, :now, :now, :queues, :tasks)
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until;

-- name: beat
UPDATE mainspring_sessions
SET lease_until = :steady + lease, beat_at = :now
WHERE id = :session AND lease_until > :steady AND lease_until <= :steady + lease
RETURNING id;

-- name: held
SELECT id, fence, wish
FROM mainspring_jobs
WHERE session = :session AND state = 'running';

-- name: lock_session
SELECT id
FROM mainspring_sessions
WHERE id = :session;

-- name: close_session
INSERT INTO mainspring_sessions_done (id, name, started_at, ended_at)
SELECT id, name, started_at, :now
FROM mainspring_sessions
WHERE id = :session
  AND NOT EXISTS (SELECT 1 FROM mainspring_jobs WHERE session = :session AND state = 'running')
ON CONFLICT DO NOTHING;

DELETE FROM mainspring_sessions
WHERE id = :session
  AND NOT EXISTS (SELECT 1 FROM mainspring_jobs WHERE session = :session AND state = 'running')
RETURNING id;

-- name: sessions
SELECT id, name, lease, started_at, beat_at,
       lease_until > :steady AND lease_until <= :steady + lease AS alive, queues, tasks
FROM mainspring_sessions
ORDER BY started_at, id;

-- name: prune_sessions
DELETE FROM mainspring_sessions_done
WHERE rowid IN (SELECT rowid FROM mainspring_sessions_done WHERE ended_at < :now - :age LIMIT :limit);

SELECT changes() AS pruned
WHERE changes() > 0;
