-- Rank is the place in the queue: strict priority, then due time. The position in the batch is added so that
-- jobs enqueued together, which are due in the same microsecond, keep their order.
-- name: enqueue
INSERT INTO mainspring_jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key)
SELECT id, task, queue, payload, priority,
       ((100 - priority) << 53) + due_us + position,
       CASE WHEN due_us <= :now THEN 'ready' ELSE 'scheduled' END,
       due_us,
       :now,
       key
FROM (
    SELECT value ->> 'id' AS id, value ->> 'task' AS task, value ->> 'queue' AS queue,
           value ->> 'payload' AS payload, value ->> 'priority' AS priority, value ->> 'key' AS key,
           coalesce(value ->> 'run_at_us', :now + (value ->> 'delay_us')) AS due_us,
           value ->> 'position' AS position
    FROM json_each(:jobs)
)
WHERE TRUE
ON CONFLICT DO NOTHING
RETURNING id;

-- name: holders
SELECT key, id
FROM mainspring_jobs
WHERE key IN (SELECT value FROM json_each(:keys));
