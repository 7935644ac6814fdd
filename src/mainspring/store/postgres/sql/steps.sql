-- name: steps
WITH {clock}
SELECT name, until, result, at, coalesce(until <= now, FALSE) AS passed
FROM mainspring.steps, clock
WHERE job_id = :job_id
ORDER BY at, name;

-- name: step_result
SELECT result
FROM mainspring.steps
WHERE job_id = :job_id AND name = :name;

-- The first result stands, however often it is told.
-- name: record_step
WITH {clock},
{holder},
kept AS (
    INSERT INTO mainspring.steps AS step (job_id, name, result, at)
    SELECT id, :name, :result, now
    FROM held, clock
    ON CONFLICT (job_id, name) DO UPDATE
    SET result = coalesce(step.result, excluded.result)
)
SELECT id
FROM held;

-- What has begun ends when it was to end, whatever is asked for now. The update changes nothing: it is there to return it.
-- name: begin_step
WITH {clock},
{holder},
begun AS (
    INSERT INTO mainspring.steps AS step (job_id, name, until, at)
    SELECT id, :name, now + CAST(:delay AS interval), now
    FROM held, clock
    ON CONFLICT (job_id, name) DO UPDATE
    SET until = coalesce(step.until, excluded.until)
    RETURNING until
)
SELECT CAST(extract(epoch FROM until - now) * 1000000 AS bigint) AS left_us
FROM begun, clock;

-- Goes through them job by job, so that a call is short however many stay. An id tells when its job was made: those of
-- jobs younger than the age, which are nearly all that stay, are not looked at.
-- name: prune_steps
WITH page AS MATERIALIZED (
    SELECT job_id
    FROM mainspring.steps
    WHERE job_id > :after AND job_id < :made_before
    ORDER BY job_id
    LIMIT :limit
),
gone AS (
    DELETE FROM mainspring.steps AS kept
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM page)) {orphaned}
)
SELECT job_id
FROM page
ORDER BY job_id DESC
LIMIT 1;
