-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Differs from PostgreSQL: SQLite has no data-modifying CTE, so a query may be several statements of one
-- transaction.
-- REPLACE: a job that was given twice in one batch, or whose id came again after it had finished, must not keep
-- others from being settled.
-- name: settle_done
WITH decided AS NOT MATERIALIZED (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS result,
           value ->> 3 AS error, value ->> 4 AS reason
    FROM json_each(:settlements)
)
INSERT OR REPLACE INTO mainspring_jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result)
SELECT job.id, job.task, job.queue, job.payload, job.priority, :state, job.run_at, job.created_at,
       job.key, job.attempt, :losses, job.fence, job.session, job.started_at,
       coalesce(decided.reason, job.reason), coalesce(decided.error, job.error),
       :now, :outcome, decided.result
FROM decided CROSS JOIN mainspring_jobs AS job
    ON job.id = decided.job_id AND job.state = :source AND job.fence = decided.fence
WHERE TRUE
RETURNING id;

DELETE FROM mainspring_jobs
WHERE rowid IN (
    SELECT job.rowid
    FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
        ON job.id = value ->> 0 AND job.state = :source AND job.fence = value ->> 1
);

-- name: settle_again
WITH {decided}
SELECT job.id, job.queue, decided.state, job.wish, job.reason AS wished
FROM decided CROSS JOIN mainspring_jobs AS job
    ON job.id = decided.job_id AND job.state = decided.source AND job.fence = decided.fence;

WITH {decided}
INSERT INTO mainspring_attempts (job_id, fence, number, session, started_at, finished_at, outcome, error)
SELECT job.id, job.fence, job.attempt, job.session, job.started_at, :now, decided.outcome, decided.error
FROM decided CROSS JOIN mainspring_jobs AS job
    ON job.id = decided.job_id AND job.state = decided.source AND job.fence = decided.fence
WHERE decided.outcome IS NOT NULL;

WITH {decided}
UPDATE mainspring_jobs
SET state = decided.state,
    attempt = decided.attempt,
    losses = decided.losses,
    error = coalesce(decided.error, mainspring_jobs.error),
    -- What a person said stays until a person says something else.
    reason = coalesce(decided.reason, CASE WHEN decided.outcome IS NOT NULL THEN mainspring_jobs.reason END),
    rank = coalesce(((100 - priority) << 53) + :now + decided.delay_us, rank),
    run_at = coalesce(:now + decided.delay_us, run_at),
    session = NULL,
    started_at = NULL,
    wish = NULL
FROM decided
WHERE mainspring_jobs.id = decided.job_id
  AND mainspring_jobs.state = decided.source
  AND mainspring_jobs.fence = decided.fence;
