-- name: get
SELECT {live}
FROM mainspring.jobs
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
UNION ALL
SELECT {done}
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)));

-- Each half walks its primary key backwards and stops at the limit, whatever the size of the tables; the half that can't
-- have jobs in the wanted state is not walked at all.
-- name: page
SELECT * FROM (
    SELECT {live}
    FROM mainspring.jobs
    WHERE id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      AND (CAST(:state AS text) IS NULL OR CAST(:state AS text) NOT IN ('succeeded', 'failed', 'cancelled', 'expired'))
      AND (CAST(:state AS text) IS NULL OR state = :state)
      AND (CAST(:queue AS text) IS NULL OR queue = :queue)
      AND (CAST(:task AS text) IS NULL OR task = :task)
      AND (CAST(:key AS text) IS NULL OR key = :key)
    ORDER BY id DESC
    LIMIT :limit
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT {done}
    FROM mainspring.jobs_done
    WHERE id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      AND (CAST(:state AS text) IS NULL OR CAST(:state AS text) IN ('succeeded', 'failed', 'cancelled', 'expired'))
      AND (CAST(:state AS text) IS NULL OR state = :state)
      AND (CAST(:queue AS text) IS NULL OR queue = :queue)
      AND (CAST(:task AS text) IS NULL OR task = :task)
      AND (CAST(:key AS text) IS NULL OR key = :key)
    ORDER BY id DESC
    LIMIT :limit
) AS finished
ORDER BY id DESC
LIMIT :limit;

-- name: counts
SELECT queue, state, count(*) AS jobs
FROM mainspring.jobs
GROUP BY queue, state;

-- name: attempts
SELECT job_id, fence, number, session, started_at, finished_at, outcome, error
FROM mainspring.attempts
WHERE job_id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
UNION ALL
SELECT id, fence, attempt, session, started_at, NULL, NULL, NULL
FROM mainspring.jobs
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid))) AND state = 'running'
UNION ALL
SELECT id, fence, attempt, session, started_at, finished_at, outcome, 
       CASE WHEN outcome IN ('failed', 'timed_out', 'lost') THEN error END
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid))) AND outcome IS NOT NULL
ORDER BY fence;

-- name: jobs_ahead
SELECT count(*) AS ahead
FROM (
    SELECT 1
    FROM mainspring.jobs AS other, (SELECT queue, rank FROM mainspring.jobs WHERE id = :job_id AND state = 'ready') AS job
    WHERE other.state = 'ready' AND other.queue = job.queue AND other.rank < job.rank
    LIMIT :most
) AS others;
