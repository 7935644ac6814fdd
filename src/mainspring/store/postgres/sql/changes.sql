-- Each part looks at the newest only: by the primary key, by the few jobs that run, and by what is kept of which pages hold
-- which times, in the partitions of today. Differs from SQLite in naming the day of filing, by which others are passed by.
-- That no part says how many are wanted keeps the planner walking the key in its order, and OFFSET asking for jobs one by one,
-- however few it takes the table to have.
-- name: changes
SELECT * FROM (
    SELECT 'created' AS change, id, team, task, queue, state, attempt, fence, created_at AS at
    FROM mainspring.jobs
    WHERE id >= :first AND id < :last
    ORDER BY id DESC
    LIMIT (SELECT CAST(:limit AS bigint))
) AS created
UNION ALL
SELECT * FROM (
    SELECT 'started' AS change, id, team, task, queue, state, attempt, fence, started_at AS at
    FROM mainspring.jobs
    WHERE state = 'running' AND started_at >= :since
    ORDER BY started_at DESC
    LIMIT :limit
) AS started
UNION ALL
SELECT * FROM (
    SELECT 'attempted' AS change, job.id, job.team, job.task, job.queue, job.state, ended.number AS attempt, ended.fence,
           ended.finished_at AS at
    FROM mainspring.attempts AS ended
    CROSS JOIN LATERAL (SELECT * FROM mainspring.jobs WHERE id = ended.job_id OFFSET 0) AS job
    WHERE ended.finished_at >= :since
    ORDER BY ended.finished_at DESC
    LIMIT :limit
) AS attempted
UNION ALL
SELECT * FROM (
    SELECT 'finished' AS change, id, team, task, queue, state, attempt, fence, finished_at AS at
    FROM mainspring.jobs_done
    WHERE finished_at >= :since AND filed_at >= :since
    ORDER BY finished_at DESC
    LIMIT :limit
) AS finished;
