-- name: lock_live
SELECT :now AS now_at, {live}
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;

-- name: lock_done
SELECT {done}
FROM mainspring_jobs_done
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;

-- The rows were read in this transaction, and the table refuses a wish on what neither runs nor is a workflow.
-- name: ask
UPDATE mainspring_jobs
SET wish = asked.wish, reason = asked.reason
FROM (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS wish, value ->> 3 AS reason
    FROM json_each(:wishes)
) AS asked
WHERE mainspring_jobs.id = asked.job_id AND mainspring_jobs.fence = asked.fence
RETURNING id;

-- The attempt that ended the job becomes history, for a next one will take its place on the row.
-- name: replay
WITH {decided}
INSERT INTO mainspring_attempts (job_id, fence, number, session, started_at, finished_at, outcome, error, details)
SELECT done.id, done.fence, done.attempt, done.session, done.started_at, done.finished_at, done.outcome,
       CASE WHEN done.outcome IN ('failed', 'timed_out', 'lost') THEN done.error END, done.details
FROM decided CROSS JOIN mainspring_jobs_done AS done
    ON done.id = decided.job_id AND done.state = decided.source AND done.fence = decided.fence
WHERE done.outcome IS NOT NULL;

WITH {decided}
INSERT INTO mainspring_jobs (
    id, task, queue, payload, priority, rank, state, run_at, created_at, key, attempt, losses, fence, reason, error,
    schedule, tick, fair, weight, workflow, links, plan, pending, awaited, team, notify)
SELECT done.id, task, queue, coalesce(decided.payload, done.payload), priority, 
       {precedence} + :now + decided.delay_us,
       decided.state, :now + decided.delay_us, created_at, done.key, decided.attempt,
       decided.losses, done.fence, decided.reason, done.error, done.schedule, done.tick, done.fair,
       done.weight, done.workflow, done.links, done.plan, decided.pending,
       EXISTS (SELECT 1 FROM mainspring_edges WHERE parent = done.id), done.team, done.notify
FROM decided CROSS JOIN mainspring_jobs_done AS done
    ON done.id = decided.job_id AND done.state = decided.source AND done.fence = decided.fence
WHERE TRUE
RETURNING id, queue;

DELETE FROM mainspring_jobs_done
WHERE id IN (SELECT value ->> 0 FROM json_each(:settlements))
  AND EXISTS (SELECT 1 FROM mainspring_jobs AS job WHERE job.id = mainspring_jobs_done.id);
