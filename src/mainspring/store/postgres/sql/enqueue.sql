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
    rank = ((100 - asked.priority)::bigint << 53)
           + coalesce(asked.due_us, job.rank - ((100 - job.priority)::bigint << 53))
FROM (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, fields ->> 2 AS payload,
           CAST(fields ->> 3 AS smallint) AS priority, fields ->> 4 AS state, CAST(fields ->> 5 AS bigint) AS due_us
    FROM jsonb_array_elements(CAST(:changed AS jsonb)) AS change (fields)
) AS asked
WHERE job.id = asked.job_id AND job.fence = asked.fence;
