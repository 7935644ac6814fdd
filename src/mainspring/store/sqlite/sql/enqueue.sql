-- name: enqueue
{insert_jobs};

-- In the order of keys, so that two batches with the same keys do not wait for each other in a circle.
-- name: enqueue_unless_taken
{insert_jobs}
ORDER BY key
ON CONFLICT DO NOTHING;

SELECT id
FROM mainspring_jobs
WHERE id IN (SELECT value ->> 0 FROM json_each(:jobs));

-- name: holders
SELECT key, id
FROM mainspring_jobs
WHERE key IN (SELECT value FROM json_each(:keys));
