-- name: steps
SELECT name, until, result, at, coalesce(until <= :now, FALSE) AS passed
FROM mainspring_steps
WHERE job_id = :job_id
ORDER BY at, name;

-- name: step_result
SELECT result
FROM mainspring_steps
WHERE job_id = :job_id AND name = :name;

-- The first result stands, however often it is told.
-- name: record_step
INSERT INTO mainspring_steps (job_id, name, result, at)
SELECT id, :name, :result, :now
FROM mainspring_jobs
WHERE {holder}
ON CONFLICT (job_id, name) DO UPDATE
SET result = coalesce(result, excluded.result);

SELECT id
FROM mainspring_jobs
WHERE {holder};

-- What has begun ends when it was to end, whatever is asked for now.
-- name: begin_step
INSERT INTO mainspring_steps (job_id, name, until, at)
SELECT id, :name, :now + :delay, :now
FROM mainspring_jobs
WHERE {holder}
ON CONFLICT (job_id, name) DO UPDATE
SET until = coalesce(until, excluded.until);

SELECT step.until - :now AS left_us
FROM mainspring_steps AS step
WHERE step.job_id = :job_id AND step.name = :name AND EXISTS (SELECT 1 FROM mainspring_jobs WHERE {holder});

-- Goes through them job by job, so that a call is short however many stay. An id tells when its job was made: those of
-- jobs younger than the age, which are nearly all that stay, are not looked at.
-- name: prune_steps
SELECT job_id
FROM (
    SELECT job_id
    FROM mainspring_steps
    {next_jobs}
)
ORDER BY job_id DESC
LIMIT 1;

DELETE FROM mainspring_steps AS kept
WHERE job_id IN (
    SELECT job_id
    FROM mainspring_steps
    {next_jobs}
) {orphaned};
