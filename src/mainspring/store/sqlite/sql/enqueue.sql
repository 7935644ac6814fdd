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
SET payload = asked.payload,
    priority = asked.priority,
    state = asked.state,
    run_at = coalesce(asked.due_us, run_at),
    rank = ((100 - asked.priority) << 53) + coalesce(asked.due_us, rank - ((100 - mainspring_jobs.priority) << 53))
FROM (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS payload, value ->> 3 AS priority,
           value ->> 4 AS state, value ->> 5 AS due_us
    FROM json_each(:changed)
) AS asked
WHERE mainspring_jobs.id = asked.job_id AND mainspring_jobs.fence = asked.fence;
