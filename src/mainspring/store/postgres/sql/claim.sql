-- The share lock on the session's row keeps the reaper from ending the session between our look at its lease
-- and our commit; without it the job would be held by a session that nobody will ever reap.
-- The picked rows are named by where they lie, which can't change while we hold their locks. They arrive as an
-- array because the planner, which can't know the limit beforehand, would otherwise expect a tenth of the queue
-- and read the whole table to join it.
-- What keeps the planner walking the index in the order of rank, whatever it believes of the table: a limit that it
-- can't see, and a condition on task and time that it thinks will cost no rows (`<>` does). Expecting few rows, it would read
-- all that is ready and sort it. The tasks become a hash table; an array would be searched anew for each row.
-- name: claim
WITH {clock},
holder AS MATERIALIZED (
    SELECT sessions.id
    FROM mainspring.sessions, clock
    WHERE sessions.id = :session AND lease_until > now
      AND NOT EXISTS (SELECT FROM mainspring.pauses WHERE kind = 'queue' AND name = :queue)
    FOR KEY SHARE OF sessions
),
picked AS MATERIALIZED (
    SELECT ctid
    FROM mainspring.jobs
    WHERE state = 'ready' AND queue = :queue AND EXISTS (SELECT FROM holder)
      AND CASE WHEN run_at > (SELECT now + CAST(:ahead AS interval) FROM clock)
                    AND run_at <= (SELECT now + CAST(:beyond AS interval) FROM clock) THEN 0
               WHEN expires_at <= (SELECT now FROM clock) THEN 0
               WHEN task IN (SELECT name FROM mainspring.pauses WHERE kind = 'task') THEN 0
               WHEN CAST(:tasks AS json) IS NULL THEN 1
               WHEN task IN (SELECT json_array_elements_text(CAST(:tasks AS json))) THEN 1 ELSE 0 END <> 0
    ORDER BY rank, id
    LIMIT (SELECT CAST(:limit AS bigint))
    FOR UPDATE SKIP LOCKED
)
UPDATE mainspring.jobs
SET state = 'running', session = :session, started_at = greatest(now, run_at), fence = fence + 1, attempt = attempt + 1
FROM clock
WHERE jobs.ctid = ANY (ARRAY(SELECT ctid FROM picked))
RETURNING {claimed};

-- name: charge
UPDATE mainspring.jobs
SET losses = :losses
WHERE id = :job_id AND state = 'running' AND fence = :fence
RETURNING id;
