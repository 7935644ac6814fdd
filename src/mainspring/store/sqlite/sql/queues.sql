-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: pause_claims
INSERT INTO mainspring_pauses (kind, name, paused_by, reason, paused_at)
VALUES (:kind, :name, :by, :reason, :now)
ON CONFLICT (kind, name) DO UPDATE SET paused_by = excluded.paused_by, reason = excluded.reason
RETURNING kind, name, paused_by, reason, paused_at;

-- name: resume_claims
DELETE FROM mainspring_pauses
WHERE kind = :kind AND name = :name
RETURNING kind, name;

-- name: pauses
SELECT kind, name, paused_by, reason, paused_at
FROM mainspring_pauses
ORDER BY kind, name;

-- name: backlog
SELECT queue, state, count(*) AS jobs, max(:now - run_at) AS waited_us
FROM mainspring_jobs
GROUP BY queue, state;
