-- name: enqueue
{insert_jobs};

-- name: enqueue_unless_taken
{insert_jobs}
ON CONFLICT DO NOTHING
RETURNING id;

-- name: holders
SELECT key, id
FROM mainspring_jobs
WHERE key IN (SELECT value FROM json_each(:keys));
