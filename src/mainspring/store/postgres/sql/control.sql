-- name: lock_live
WITH {clock}
SELECT now AS now_at, {live}
FROM mainspring.jobs, clock
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
ORDER BY id
FOR UPDATE OF jobs;

-- name: lock_done
SELECT {done}
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
ORDER BY id
FOR UPDATE;

-- The rows are locked since `lock_live`, and the table refuses a wish on what neither runs nor is a workflow.
-- name: ask
UPDATE mainspring.jobs AS job
SET wish = asked.wish, reason = asked.reason
FROM (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence,
           fields ->> 2 AS wish, fields ->> 3 AS reason
    FROM jsonb_array_elements(CAST(:wishes AS jsonb)) AS wished (fields)
) AS asked
WHERE job.id = asked.job_id AND job.fence = asked.fence
RETURNING job.id;

-- The attempt that ended the job becomes history, for a next one will take its place on the row.
-- name: replay
WITH {clock},
decided AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, fields ->> 2 AS source,
           fields ->> 3 AS state, CAST(fields ->> 4 AS integer) AS attempt, CAST(fields ->> 5 AS integer) AS losses,
           CAST(fields ->> 6 AS bigint) AS delay_us, fields ->> 7 AS reason, fields ->> 8 AS payload, CAST(fields ->> 9 AS integer) AS pending
    FROM jsonb_array_elements(CAST(:settlements AS jsonb)) AS settlement (fields)
),
gone AS (
    DELETE FROM mainspring.jobs_done AS done
    USING decided, clock
    -- By an array, or else a planner that knows nothing of the day's partition would read it from end to end.
    WHERE done.id = ANY (ARRAY(SELECT job_id FROM decided))
      AND done.id = decided.job_id AND done.state = decided.source AND done.fence = decided.fence
    RETURNING done.*, decided.state AS new_state, decided.attempt AS new_attempt, decided.losses AS new_losses,
              decided.reason AS new_reason, decided.payload AS new_payload, decided.pending,
              now_us + decided.delay_us AS due_us
),
kept AS (
    INSERT INTO mainspring.attempts (job_id, fence, number, session, started_at, finished_at, outcome, error, details)
    SELECT id, fence, attempt, session, started_at, finished_at, outcome,
           CASE WHEN outcome IN ('failed', 'timed_out', 'lost') THEN error END, details
    FROM gone
    WHERE outcome IS NOT NULL
)
INSERT INTO mainspring.jobs (
    id, task, queue, payload, priority, rank, state, run_at, created_at, key, attempt, losses, fence, reason, error,
    schedule, tick, fair, weight, workflow, links, plan, pending, awaited, team, notify)
SELECT id, task, queue, coalesce(new_payload, payload), priority, due_us + {precedence}, new_state,
       timestamptz 'epoch' + due_us * interval '1 microsecond', created_at, key, new_attempt, new_losses,
       fence, new_reason, error, schedule, tick, fair, weight, workflow, links, plan, pending,
       EXISTS (SELECT FROM mainspring.edges WHERE parent = id), team, notify
FROM gone
RETURNING id, queue;
