-- Rank is the place in the queue: strict priority, then due time. The position in the batch is added so that
-- jobs enqueued together, which are due in the same microsecond, keep their order.
-- name: enqueue
WITH {clock},
asked AS (
    SELECT *, coalesce(run_at_us, (extract(epoch FROM now) * 1000000)::bigint + delay_us) AS due_us
    FROM clock, json_to_recordset(CAST(:jobs AS json)) AS job (
        id uuid, task text, queue text, payload text, priority smallint,
        run_at_us bigint, delay_us bigint, key text, position integer)
)
INSERT INTO mainspring.jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key)
SELECT id, task, queue, payload, priority,
       ((100 - priority)::bigint << 53) + due_us + position,
       CASE WHEN due_us <= (extract(epoch FROM now) * 1000000)::bigint THEN 'ready' ELSE 'scheduled' END,
       timestamptz 'epoch' + due_us * interval '1 microsecond',
       now,
       key
FROM asked
ON CONFLICT DO NOTHING
RETURNING id;

-- name: holders
SELECT key, id
FROM mainspring.jobs
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));
