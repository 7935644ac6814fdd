-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: pause_claims
WITH {clock}
INSERT INTO mainspring.pauses (kind, name, paused_by, reason, paused_at)
SELECT :kind, :name, :by, :reason, now
FROM clock
ON CONFLICT (kind, name) DO UPDATE SET paused_by = excluded.paused_by, reason = excluded.reason
RETURNING kind, name, paused_by, reason, paused_at;

-- name: resume_claims
DELETE FROM mainspring.pauses
WHERE kind = :kind AND name = :name
RETURNING kind, name;

-- name: pauses
SELECT kind, name, paused_by, reason, paused_at
FROM mainspring.pauses
ORDER BY kind, name;

-- name: backlog
WITH {clock}
SELECT queue, state, count(*) AS jobs, CAST(max(extract(epoch FROM now - run_at)) * 1000000 AS bigint) AS waited_us
FROM mainspring.jobs, clock
GROUP BY queue, state;
