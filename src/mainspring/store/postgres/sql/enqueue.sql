-- name: enqueue
{insert_jobs};

-- In the order of keys, so that two batches with the same keys do not wait for each other in a circle.
-- name: enqueue_unless_taken
{insert_jobs}
ORDER BY key, position
ON CONFLICT DO NOTHING
RETURNING id;

-- name: holders
SELECT key, id
FROM mainspring.jobs
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));

-- The rows are locked since `lock_live`. A job that keeps its due time keeps its place among those of its priority.
-- name: replace
UPDATE mainspring.jobs AS job
SET payload = asked.payload,
    priority = asked.priority,
    state = asked.state,
    run_at = coalesce(timestamptz 'epoch' + asked.due_us * interval '1 microsecond', job.run_at),
    rank = asked.rank
FROM (
    SELECT job_id, fence, payload, priority, state, due_us, place + {precedence} AS rank
    FROM (
        SELECT job_id, fence, payload, new_priority AS priority, state, due_us, queue,
               coalesce(due_us, rank - {precedence}) AS place
        FROM (
            SELECT held.id AS job_id, held.queue, held.priority, held.rank, CAST(fields ->> 1 AS bigint) AS fence,
                   fields ->> 2 AS payload, CAST(fields ->> 3 AS smallint) AS new_priority, fields ->> 4 AS state,
                   CAST(fields ->> 5 AS bigint) AS due_us
            FROM jsonb_array_elements(CAST(:changed AS jsonb)) AS change (fields)
            JOIN mainspring.jobs AS held ON held.id = CAST(fields ->> 0 AS uuid)
        ) AS given
    ) AS placed
) AS asked
WHERE job.id = asked.job_id AND job.fence = asked.fence;
