-- name: enqueue
{insert_jobs};

-- In the order of keys, so that two batches with the same keys do not wait for each other in a circle.
-- name: enqueue_unless_taken
{insert_jobs}
ORDER BY key, position
ON CONFLICT DO NOTHING;

SELECT id
FROM mainspring_jobs
WHERE id IN (SELECT value ->> 0 FROM json_each(:jobs));

-- name: holders
SELECT key, id
FROM mainspring_jobs
WHERE key IN (SELECT value FROM json_each(:keys));

-- The rows were read in this transaction. A job that keeps its due time keeps its place among those of its priority.
-- name: replace
UPDATE mainspring_jobs
SET payload = asked.payload, priority = asked.priority, state = asked.state,
    run_at = coalesce(asked.due_us, mainspring_jobs.run_at), rank = asked.rank
FROM (
    SELECT job_id, fence, payload, priority, state, due_us, place + {precedence} AS rank
    FROM (
        SELECT job_id, fence, payload, new_priority AS priority, state, due_us, queue,
               coalesce(due_us, rank - {precedence}) AS place
        FROM (
            SELECT held.id AS job_id, held.queue, held.priority, held.rank, value ->> 1 AS fence,
                   value ->> 2 AS payload, value ->> 3 AS new_priority, value ->> 4 AS state, value ->> 5 AS due_us
            FROM json_each(:changed) CROSS JOIN mainspring_jobs AS held ON held.id = value ->> 0
        )
    )
) AS asked
WHERE mainspring_jobs.id = asked.job_id AND mainspring_jobs.fence = asked.fence;
