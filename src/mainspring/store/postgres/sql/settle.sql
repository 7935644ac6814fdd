-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Jobs that end alike share one call, so that little has to be unpacked for each. What they share stands in a CTE of
-- its own: a literal 'running' would tempt the planner to the index of what a session holds, which is full of dead
-- entries.
-- name: settle_done
WITH {clock},
ending AS MATERIALIZED (
    SELECT CAST(:source AS text) AS source, CAST(:state AS text) AS state, CAST(:outcome AS text) AS outcome,
           CAST(:losses AS integer) AS losses
),
decided AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, fields ->> 2 AS result,
           fields ->> 3 AS error, fields ->> 4 AS reason
    FROM jsonb_array_elements(CAST(:settlements AS jsonb)) AS settlement (fields)
),
gone AS (
    DELETE FROM mainspring.jobs AS job
    USING decided, ending
    WHERE job.id = decided.job_id AND job.state = ending.source AND job.fence = decided.fence
    RETURNING job.id, job.task, job.queue, job.payload, job.priority, ending.state, job.run_at, job.created_at,
              job.key, job.attempt, ending.losses, job.fence, job.session, job.started_at,
              coalesce(decided.reason, job.reason) AS reason, coalesce(decided.error, job.error) AS error,
              ending.outcome, decided.result
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
    -- What a person said stays until a person says something else.
    reason = coalesce(held.reason, CASE WHEN held.outcome IS NOT NULL THEN job.reason END),
    rank = coalesce(((100 - job.priority)::bigint << 53) + held.due_us, job.rank),
    run_at = coalesce(timestamptz 'epoch' + held.due_us * interval '1 microsecond', job.run_at),
    session = NULL,
    started_at = NULL,
    wish = NULL
FROM held
WHERE job.id = held.job_id
RETURNING job.id, job.queue, job.state, held.wish, held.wished;
