-- name: get_unfinished
SELECT {live}
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: get
SELECT {live}
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT {done}
FROM mainspring_jobs_done
WHERE id IN (SELECT value FROM json_each(:ids));

-- Each half walks its primary key backwards from one id to another, and stops at the limit, whatever the size of the
-- tables; the half that can't have what is wanted is not walked at all.
-- name: page
SELECT * FROM (
    SELECT {live}
    FROM mainspring_jobs
    WHERE :unfinished AND {whosoever} AND {within}
      AND {wanted}
    ORDER BY id DESC
    LIMIT :limit
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT {done}
    FROM mainspring_jobs_done
    WHERE :finished AND {whosoever} AND {within}
      AND {wanted} AND {ended_then}
    ORDER BY id DESC
    LIMIT :limit
) AS finished
ORDER BY id DESC
LIMIT :limit;

-- The same for one team, by the indexes that hold no others.
-- name: page_of
SELECT * FROM (
    SELECT {live}
    FROM mainspring_jobs
    WHERE :unfinished AND team = :team AND {within}
      AND {wanted}
    ORDER BY id DESC
    LIMIT :limit
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT {done}
    FROM mainspring_jobs_done
    WHERE :finished AND team = :team AND {within}
      AND {wanted} AND {ended_then}
    ORDER BY id DESC
    LIMIT :limit
) AS finished
ORDER BY id DESC
LIMIT :limit;

-- The same for those that ended in another way than most.
-- name: page_ended
SELECT {done}
FROM mainspring_jobs_done
WHERE state <> 'succeeded' AND state = :state AND {whosoever} AND {within}
  AND {wanted} AND {ended_then}
ORDER BY id DESC
LIMIT :limit;

-- The same for unfinished jobs of which few are in the state: all of these are looked at, and there is a row in any case
-- that says how many they are.
-- name: page_few
WITH few AS MATERIALIZED (
    {in_state}
    LIMIT :most
),
page AS (
    SELECT {live}
    FROM mainspring_jobs
    WHERE id IN (SELECT id FROM few) AND {within} AND {wanted}
      AND (:team IS NULL OR coalesce(team, 'default') = :team)
    ORDER BY id DESC
    LIMIT :limit
)
SELECT *
FROM (SELECT count(*) AS looked FROM few) AS few LEFT JOIN page ON TRUE
ORDER BY id DESC;

-- name: few
SELECT count(*) AS jobs
FROM (
    {in_state}
    LIMIT :most
) AS few;

-- How far back a page may look: to where either half has so many rows that it has looked at enough.
-- name: look_back
SELECT * FROM (
    SELECT id
    FROM mainspring_jobs
    WHERE :unfinished AND {within}
    ORDER BY id DESC
    LIMIT 1 OFFSET :looked
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT id
    FROM mainspring_jobs_done
    WHERE :finished AND {within}
    ORDER BY id DESC
    LIMIT 1 OFFSET :looked
) AS finished
ORDER BY id DESC
LIMIT 1;

-- name: look_back_of
SELECT * FROM (
    SELECT id
    FROM mainspring_jobs
    WHERE :unfinished AND team = :team AND {within}
    ORDER BY id DESC
    LIMIT 1 OFFSET :looked
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT id
    FROM mainspring_jobs_done
    WHERE :finished AND team = :team AND {within}
    ORDER BY id DESC
    LIMIT 1 OFFSET :looked
) AS finished
ORDER BY id DESC
LIMIT 1;

-- name: look_back_ended
SELECT id
FROM mainspring_jobs_done
WHERE state <> 'succeeded' AND state = :state AND {within}
ORDER BY id DESC
LIMIT 1 OFFSET :looked;

-- name: counts
SELECT queue, state, count(*) AS jobs
FROM mainspring_jobs
GROUP BY queue, state;

-- name: attempts
SELECT job_id, fence, number, session, started_at, finished_at, outcome, error, details,
       coalesce((SELECT name FROM mainspring_sessions WHERE id = session),
                (SELECT name FROM mainspring_sessions_done WHERE id = session)) AS worker
FROM (
    SELECT job_id, fence, number, session, started_at, finished_at, outcome, error, details
    FROM mainspring_attempts
    WHERE job_id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT id, fence, attempt, session, started_at, NULL, NULL, NULL, NULL
    FROM mainspring_jobs
    WHERE id IN (SELECT value FROM json_each(:ids)) AND state = 'running'
    UNION ALL
    SELECT id, fence, attempt, session, started_at, finished_at, outcome,
           CASE WHEN outcome IN ('failed', 'timed_out', 'lost') THEN error END, details
    FROM mainspring_jobs_done
    WHERE id IN (SELECT value FROM json_each(:ids)) AND outcome IS NOT NULL
) AS made
ORDER BY fence;

-- Those are left out that a claim would leave out, too. In order, so that the index is walked up to the limit.
-- name: jobs_ahead
SELECT count(*) AS ahead
FROM (
    SELECT 1
    FROM mainspring_jobs
    WHERE state = 'ready'
      AND queue = (SELECT queue FROM mainspring_jobs WHERE id = :job_id AND state = 'ready')
      AND rank <= (SELECT rank FROM mainspring_jobs WHERE id = :job_id AND state = 'ready')
      AND (rank < (SELECT rank FROM mainspring_jobs WHERE id = :job_id AND state = 'ready') OR rowid < (SELECT rowid FROM mainspring_jobs WHERE id = :job_id))
      AND (expires_at IS NULL OR expires_at > :now)
      AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
      AND task NOT IN (SELECT name FROM mainspring_pauses WHERE kind = 'task')
    ORDER BY rank
    LIMIT :most
) AS others;

-- name: waiting_ahead
SELECT count(*) AS ahead
FROM (
    SELECT 1
    FROM mainspring_jobs
    WHERE waits_for = (SELECT waits_for FROM mainspring_jobs WHERE id = :job_id)
      AND rank <= (SELECT rank FROM mainspring_jobs WHERE id = :job_id)
      AND (rank < (SELECT rank FROM mainspring_jobs WHERE id = :job_id) OR rowid < (SELECT rowid FROM mainspring_jobs WHERE id = :job_id))
    LIMIT :most
) AS others;

-- The newest are cut off before anything is asked of them: a queue that has been idle would else be looked for in all
-- history. Those that ended without a worker tell nothing of how fast workers are.
-- name: pace
SELECT count(*) AS finished, min(finished_at) AS first_at, :now AS now_at
FROM (
    SELECT finished_at
    FROM (
        SELECT queue, outcome, finished_at
        FROM mainspring_jobs_done
        ORDER BY id DESC
        LIMIT :newest
    ) AS newest
    WHERE queue = :queue AND outcome IS NOT NULL AND finished_at > :now - :lately
    ORDER BY finished_at DESC
    LIMIT :most
) AS last;
