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

-- An id tells when its job was made, so that no job younger than the age is looked for; of what is older, most is gone.
-- name: prune_steps
WITH old AS MATERIALIZED (
    SELECT job_id
    FROM mainspring.steps AS step
    WHERE job_id < :made_before {orphaned}
    LIMIT :limit
),
gone AS (
    DELETE FROM mainspring.steps
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM old))
    RETURNING job_id
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
