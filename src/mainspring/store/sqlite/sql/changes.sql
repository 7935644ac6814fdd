-- Each part walks an index from its newest end and stops at the limit: the primary key, the few jobs that run, and the
-- indexes by which prune finds what is old.
-- name: changes
SELECT * FROM (
    SELECT 'created' AS change, id, team, task, queue, state, attempt, fence, created_at AS at
    FROM mainspring_jobs
    WHERE id >= :first AND id < :last
    ORDER BY id DESC
    LIMIT :limit
) AS created
UNION ALL
SELECT * FROM (
    SELECT 'started' AS change, id, team, task, queue, state, attempt, fence, started_at AS at
    FROM mainspring_jobs INDEXED BY mainspring_jobs_held
    WHERE state = 'running' AND started_at >= :since
    ORDER BY started_at DESC
    LIMIT :limit
) AS started
UNION ALL
SELECT * FROM (
    SELECT 'attempted' AS change, job.id, job.team, job.task, job.queue, job.state, ended.number AS attempt, ended.fence,
           ended.finished_at AS at
    FROM mainspring_attempts AS ended
    JOIN mainspring_jobs AS job ON job.id = ended.job_id
    WHERE ended.finished_at >= :since
    ORDER BY ended.finished_at DESC
    LIMIT :limit
) AS attempted
UNION ALL
SELECT * FROM (
    SELECT 'finished' AS change, id, team, task, queue, state, attempt, fence, finished_at AS at
    FROM mainspring_jobs_done
    WHERE finished_at >= :since
    ORDER BY finished_at DESC
    LIMIT :limit
) AS finished;
