-- Differs from PostgreSQL: no SKIP LOCKED and no lock on the session, because there is one writer at a time. For the
-- same reason both statements are about the same jobs. What is read is read by SELECT, which arrives in one piece.
-- name: claim
SELECT rank, id, task, payload, priority, run_at, created_at, key, attempt + 1 AS attempt, losses, fence + 1 AS fence,
       :now AS started_at, reason, error, progress, schedule, tick, expires_at, fair, workflow, links, plan, awaited,
       team, notify, trace
FROM mainspring_jobs
{next_ready};

UPDATE mainspring_jobs
SET state = 'running', session = :session, started_at = max(:now, run_at), fence = fence + 1, attempt = attempt + 1
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_jobs
    {next_ready}
);

-- name: charge
UPDATE mainspring_jobs
SET losses = :losses
WHERE id = :job_id AND state = 'running' AND fence = :fence
RETURNING id;
