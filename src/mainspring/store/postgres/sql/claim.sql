-- The share lock on the session's row keeps the reaper from ending the session between our look at its lease
-- and our commit; without it the job would be held by a session that nobody will ever reap.
-- The picked rows are named by where they lie, which can't change while we hold their locks. They arrive as an
-- array because the planner, which can't know the limit beforehand, would otherwise expect a tenth of the queue
-- and read the whole table to join it.
-- name: claim
WITH {clock},
holder AS MATERIALIZED (
    SELECT sessions.id
    FROM mainspring.sessions, clock
    WHERE sessions.id = :session AND lease_until > now
    FOR KEY SHARE OF sessions
),
picked AS MATERIALIZED (
    SELECT ctid
    FROM mainspring.jobs
    WHERE state = 'ready' AND queue = :queue AND EXISTS (SELECT FROM holder)
    ORDER BY rank
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE mainspring.jobs
SET state = 'running', session = :session, started_at = now, fence = fence + 1, attempt = attempt + 1
FROM clock
WHERE jobs.ctid = ANY (ARRAY(SELECT ctid FROM picked))
RETURNING {claimed};
