-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- name: settle_done
WITH {clock},
{decided},
gone AS (
    DELETE FROM mainspring.jobs AS job
    USING decided
    WHERE job.id = decided.job_id AND job.state = decided.source AND job.fence = decided.fence
    RETURNING job.id, job.task, job.queue, job.payload, job.priority, decided.state, job.run_at, job.created_at,
              job.key, decided.attempt, decided.losses, job.fence, job.session, job.started_at,
              coalesce(decided.reason, job.reason) AS reason, coalesce(decided.error, job.error) AS error,
              decided.outcome, decided.result
)
INSERT INTO mainspring.jobs_done (
    id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
    session, started_at, reason, error, finished_at, outcome, result)
SELECT id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
       session, started_at, reason, error, now, outcome, result
FROM gone, clock
RETURNING id;

-- name: settle_again
WITH {clock},
{decided},
held AS (
    SELECT decided.*, now_us + delay_us AS due_us, job.queue, job.session, job.started_at,
           job.attempt AS number, job.wish, job.reason AS wished
    FROM clock, decided JOIN mainspring.jobs AS job
        ON job.id = decided.job_id AND job.state = decided.source AND job.fence = decided.fence
    ORDER BY job.id
    FOR UPDATE OF job
),
kept AS (
    INSERT INTO mainspring.attempts (job_id, fence, number, session, started_at, finished_at, outcome, error)
    SELECT job_id, fence, number, session, started_at, now, outcome, error
    FROM held, clock
    WHERE outcome IS NOT NULL
)
UPDATE mainspring.jobs AS job
SET state = held.state,
    attempt = held.attempt,
    losses = held.losses,
    error = coalesce(held.error, job.error),
    reason = held.reason,
    rank = coalesce(((100 - job.priority)::bigint << 53) + held.due_us, job.rank),
    run_at = coalesce(timestamptz 'epoch' + held.due_us * interval '1 microsecond', job.run_at),
    session = NULL,
    started_at = NULL,
    wish = NULL
FROM held
WHERE job.id = held.job_id
RETURNING job.id, job.queue, job.state, held.wish, held.wished;
