-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Differs from PostgreSQL: SQLite has no data-modifying CTE, so a query may be several statements of one
-- transaction.
-- name: settle_done
INSERT INTO mainspring_jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result)
SELECT job.id, job.task, job.queue, job.payload, job.priority, value ->> 'state', job.run_at, job.created_at,
       job.key, value ->> 'attempt', value ->> 'losses', job.fence, job.session, job.started_at,
       coalesce(value ->> 'reason', job.reason), coalesce(value ->> 'error', job.error),
       :now, value ->> 'outcome', value ->> 'result'
FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 'job_id' AND job.state = value ->> 'source' AND job.fence = value ->> 'fence'
WHERE TRUE
RETURNING id;

DELETE FROM mainspring_jobs
WHERE id IN (
    SELECT job.id
    FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
        ON job.id = value ->> 'job_id' AND job.state = value ->> 'source' AND job.fence = value ->> 'fence'
);

-- name: settle_again
SELECT job.id, job.queue, value ->> 'state' AS state, job.wish, job.reason AS wished
FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 'job_id' AND job.state = value ->> 'source' AND job.fence = value ->> 'fence';

INSERT INTO mainspring_attempts (job_id, fence, number, session, started_at, finished_at, outcome, error)
SELECT job.id, job.fence, job.attempt, job.session, job.started_at, :now, value ->> 'outcome', value ->> 'error'
FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 'job_id' AND job.state = value ->> 'source' AND job.fence = value ->> 'fence'
WHERE value ->> 'outcome' IS NOT NULL;

UPDATE mainspring_jobs
SET state = decided.state,
    attempt = decided.attempt,
    losses = decided.losses,
    error = coalesce(decided.error, mainspring_jobs.error),
    reason = decided.reason,
    rank = coalesce(((100 - priority) << 53) + :now + decided.delay_us, rank),
    run_at = coalesce(:now + decided.delay_us, run_at),
    session = NULL,
    started_at = NULL,
    wish = NULL
FROM (
    SELECT value ->> 'job_id' AS job_id, value ->> 'source' AS source, value ->> 'fence' AS fence,
           value ->> 'state' AS state, value ->> 'attempt' AS attempt, value ->> 'losses' AS losses,
           value ->> 'error' AS error, value ->> 'reason' AS reason, value ->> 'delay_us' AS delay_us
    FROM json_each(:settlements)
) AS decided
WHERE mainspring_jobs.id = decided.job_id
  AND mainspring_jobs.state = decided.source
  AND mainspring_jobs.fence = decided.fence;
