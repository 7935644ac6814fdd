-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Differs from PostgreSQL: SQLite has no data-modifying CTE, so a query may be several statements of one
-- transaction. Those of settle_done share a temporary table: the settlements that hold, each with the place of its
-- row, so that they are matched, and their JSON is read, once.
-- REPLACE: a job that was given twice in one batch, or whose id came again after it had finished, must not keep
-- others from being settled.
-- name: settle_done
INSERT INTO temp.mainspring_settled (place, id, result, error, reason, fingerprint, details, awaited)
SELECT job.rowid, job.id, value ->> 1, value ->> 2, value ->> 3, CASE WHEN :state = 'failed' THEN value ->> 4 END,
       value ->> 5, job.awaited
FROM json_each(:settlements) AS told CROSS JOIN mainspring_jobs AS job
    ON job.id = told.key AND job.fence = value ->> 0 AND job.state = :source AND job.awaited <= :awaited;

INSERT OR REPLACE INTO mainspring_jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result, progress, schedule, tick, expires_at,
    fair, weight, workflow, links, plan, team, notify, fingerprint, details)
SELECT job.id, job.task, job.queue, job.payload, job.priority, :state, job.run_at, job.created_at,
       job.key, job.attempt, :losses, job.fence, job.session, job.started_at,
       coalesce(settled.reason, job.reason), coalesce(settled.error, CASE WHEN NOT :forgets THEN job.error END),
       :now, :outcome, settled.result, job.progress, job.schedule, job.tick, job.expires_at, job.fair, job.weight, job.workflow, job.links,
       job.plan, job.team, job.notify, settled.fingerprint, settled.details
FROM temp.mainspring_settled AS settled CROSS JOIN mainspring_jobs AS job ON job.rowid = settled.place;

DELETE FROM mainspring_jobs
WHERE rowid IN (SELECT place FROM temp.mainspring_settled);

SELECT count(*) AS settled, CASE WHEN count(*) <> :expected THEN json_group_array(id) END AS ids,
       coalesce(max(awaited), FALSE) AS awaited
FROM temp.mainspring_settled;

DELETE FROM temp.mainspring_settled;

-- name: settle_again
SELECT job.id, job.queue, value ->> 2 AS state, job.wish, job.reason AS wished
FROM json_each(:settlements) AS told CROSS JOIN mainspring_jobs AS job
    ON job.id = told.key AND job.fence = value ->> 0 AND job.state = value ->> 1;

WITH {told}
INSERT INTO mainspring_attempts (job_id, fence, number, session, started_at, finished_at, outcome, error, details)
SELECT job.id, job.fence, job.attempt, job.session, job.started_at, :now, told.outcome, told.error, told.details
FROM told CROSS JOIN mainspring_jobs AS job
    ON job.id = told.job_id AND job.state = told.source AND job.fence = told.fence
WHERE told.outcome IS NOT NULL;

WITH {told}
UPDATE mainspring_jobs
SET state = told.state,
    attempt = told.attempt,
    losses = told.losses,
    error = coalesce(told.error, mainspring_jobs.error),
    -- What a person said stays until a person says something else.
    reason = coalesce(told.reason, CASE WHEN told.outcome IS NOT NULL THEN mainspring_jobs.reason END),
    rank = coalesce(:now + told.delay_us + {precedence}, rank),
    run_at = coalesce(:now + told.delay_us, run_at),
    session = NULL,
    started_at = NULL,
    wish = NULL,
    waits_for = told.waits_for,
    pending = coalesce(told.pending, mainspring_jobs.pending),
    signal = told.signal,
    plan = coalesce(told.plan, mainspring_jobs.plan),
    expires_at = CASE WHEN told.expires_us IS NULL THEN expires_at
                      WHEN told.expires_us >= 0 THEN :now + told.expires_us END
FROM told
WHERE mainspring_jobs.id = told.job_id
  AND mainspring_jobs.state = told.source
  AND mainspring_jobs.fence = told.fence;
