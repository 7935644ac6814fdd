-- name: enqueue
{insert_jobs};

-- name: enqueue_unless_taken
{insert_jobs}
ON CONFLICT DO NOTHING
RETURNING id;

-- name: holders
SELECT key, id
FROM mainspring.jobs
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));
