-- Each settlement names the state and the fence that it was decided on: zero rows means that it came too late.
-- Jobs that end alike share one call, so that little has to be unpacked for each. What they share stands in a CTE of
-- its own: a literal 'running' would tempt the planner to the index of what a session holds, which is full of dead
-- entries.
-- Jobs are found by an array of ids, and each finds its settlement by its id. With a join, a planner that takes the
-- table for empty, as it is whenever a queue has just been drained, would compare every job with every settlement.
-- name: settle_done
WITH {clock},
ending AS MATERIALIZED (
    SELECT CAST(:source AS text) AS source, CAST(:state AS text) AS state, CAST(:outcome AS text) AS outcome,
           CAST(:losses AS integer) AS losses, CAST(:forgets AS boolean) AS forgets
),
{given},
gone AS (
    DELETE FROM mainspring.jobs AS job
    USING ending
    WHERE job.id = ANY (ARRAY(SELECT CAST(jsonb_object_keys(settlements) AS uuid) FROM given))
      AND job.state = ending.source
      AND job.fence = CAST({told} ->> 0 AS bigint)
      AND job.awaited <= CAST(:awaited AS boolean)
    RETURNING job.id, job.task, job.queue, job.payload, job.priority, ending.state, job.run_at, job.created_at,
              job.key, job.attempt, ending.losses, job.fence, job.session, job.started_at, job.reason,
              CASE WHEN NOT ending.forgets THEN job.error END AS error, ending.outcome, {told} AS told, job.progress,
              job.schedule, job.tick, job.expires_at, job.fair, job.weight, job.workflow, job.links, job.plan,
              job.awaited, job.team, job.notify
),
kept AS (
    INSERT INTO mainspring.jobs_done (
        id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
        session, started_at, reason, error, finished_at, outcome, result, progress, schedule, tick,
        expires_at, fair, weight, workflow, links, plan, team, notify, fingerprint, details, filed_at)
    SELECT id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence,
           session, started_at, coalesce(told ->> 3, reason), coalesce(told ->> 2, error), now, outcome, told ->> 1,
           progress, schedule, tick, expires_at, fair, weight, workflow, links, plan, team, notify,
           CASE WHEN state = 'failed' THEN told ->> 4 END, told ->> 5, now
    FROM gone, clock
    RETURNING id
)
SELECT count(*) AS settled, CASE WHEN count(*) <> :expected THEN CAST(json_agg(id) AS text) END AS ids,
       EXISTS (SELECT FROM gone WHERE awaited) AS awaited
FROM kept;

-- name: settle_again
WITH {clock},
{given},
held AS MATERIALIZED (
    SELECT job.id, job.queue, job.fence, job.session, job.started_at, job.attempt AS number, job.wish,
           job.reason AS wished, {told} AS told
    FROM mainspring.jobs AS job
    WHERE job.id = ANY (ARRAY(SELECT CAST(jsonb_object_keys(settlements) AS uuid) FROM given))
      AND job.state = {told} ->> 1
      AND job.fence = CAST({told} ->> 0 AS bigint)
    ORDER BY job.id
    FOR UPDATE OF job
),
kept AS (
    INSERT INTO mainspring.attempts (job_id, fence, number, session, started_at, finished_at, outcome, error,
                                     details)
    SELECT id, fence, number, session, started_at, now, told ->> 5, told ->> 6, told ->> 14
    FROM held, clock
    WHERE told ->> 5 IS NOT NULL
),
moved AS (
    UPDATE mainspring.jobs AS job
    SET state = {told} ->> 2,
        attempt = CAST({told} ->> 3 AS integer),
        losses = CAST({told} ->> 4 AS integer),
        error = coalesce({told} ->> 6, job.error),
        -- What a person said stays until a person says something else.
        reason = coalesce({told} ->> 7, CASE WHEN {told} ->> 5 IS NOT NULL THEN job.reason END),
        rank = coalesce(now_us + CAST({told} ->> 8 AS bigint) + {precedence}, job.rank),
        run_at = coalesce(now + CAST({told} ->> 8 AS bigint) * interval '1 microsecond', job.run_at),
        session = NULL,
        started_at = NULL,
        wish = NULL,
        waits_for = {told} ->> 9,
        pending = coalesce(CAST({told} ->> 10 AS integer), job.pending),
        signal = {told} ->> 11,
        plan = coalesce({told} ->> 12, job.plan),
        expires_at = CASE WHEN {told} ->> 13 IS NULL THEN job.expires_at
                          WHEN CAST({told} ->> 13 AS bigint) >= 0
                          THEN now + CAST({told} ->> 13 AS bigint) * interval '1 microsecond' END
    FROM clock
    WHERE job.id = ANY (ARRAY(SELECT id FROM held))
)
SELECT id, queue, told ->> 2 AS state, wish, wished
FROM held;
