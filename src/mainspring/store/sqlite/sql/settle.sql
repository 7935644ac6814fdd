-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Differs from PostgreSQL: SQLite has no data-modifying CTE, so a query may be several statements of one
-- transaction. Those of settle_done share a temporary table: the settlements that hold, each with the place of its
-- row, so that they are matched, and their JSON is read, once.
-- REPLACE: a job that was given twice in one batch, or whose id came again after it had finished, must not keep
-- others from being settled.
-- name: settle_done
INSERT INTO temp.settled (place, id, result, error, reason)
SELECT job.rowid, job.id, value ->> 2, value ->> 3, value ->> 4
FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 0 AND job.fence = value ->> 1 AND job.state = :source;

INSERT OR REPLACE INTO mainspring_jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result)
SELECT job.id, job.task, job.queue, job.payload, job.priority, :state, job.run_at, job.created_at,
       job.key, job.attempt, :losses, job.fence, job.session, job.started_at,
       coalesce(settled.reason, job.reason), coalesce(settled.error, job.error), :now, :outcome, settled.result
FROM temp.settled CROSS JOIN mainspring_jobs AS job ON job.rowid = settled.place;

DELETE FROM mainspring_jobs
WHERE rowid IN (SELECT place FROM temp.settled);

SELECT id
FROM temp.settled;

DELETE FROM temp.settled;

-- name: settle_again
SELECT job.id, job.queue, value ->> 3 AS state, job.wish, job.reason AS wished
FROM json_each(:settlements) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 0 AND job.fence = value ->> 1 AND job.state = value ->> 2;

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
