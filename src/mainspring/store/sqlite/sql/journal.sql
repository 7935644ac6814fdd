-- name: lock_running
SELECT job.id
FROM json_each(:attempts) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 0 AND job.fence = value ->> 1 AND job.state = 'running';

-- name: record_lines
INSERT INTO mainspring_logs (job_id, fence, number, at, level, message, logger)
SELECT job.id, job.fence, value ->> 2, :now, value ->> 3, value ->> 4, value ->> 5
FROM json_each(:lines) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 0 AND job.fence = value ->> 1 AND job.state = 'running'
WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: record_progress
UPDATE mainspring_jobs
SET progress = told.progress
FROM (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS progress
    FROM json_each(:progress)
) AS told
WHERE mainspring_jobs.id = told.job_id AND mainspring_jobs.fence = told.fence AND mainspring_jobs.state = 'running';

-- name: logs
SELECT fence, number, at, level, message, logger
FROM mainspring_logs
WHERE job_id = :job_id AND (fence, number) > (:fence, :number)
  AND (:contains IS NULL OR instr(message, :contains) > 0)
  AND lower(level) NOT IN (SELECT value FROM json_each(:left_out))
ORDER BY fence, number
LIMIT :limit;

-- A line whose job was pruned is nobody's, and so nobody finds it: whose it was can't be told any more.
-- name: find_logs
SELECT line.job_id, coalesce(job.task, done.task) AS task, line.fence, line.number, line.at, line.level, line.message,
       line.logger
FROM mainspring_logs AS line
LEFT JOIN mainspring_jobs AS job ON job.id = line.job_id
LEFT JOIN mainspring_jobs_done AS done ON done.id = line.job_id AND job.id IS NULL
WHERE line.at >= :since AND line.at < :before
  AND (:contains IS NULL OR instr(line.message, :contains) > 0)
  AND lower(line.level) NOT IN (SELECT value FROM json_each(:left_out))
  AND coalesce(job.id, done.id) IS NOT NULL
  AND (:task IS NULL OR coalesce(job.task, done.task) = :task)
  AND (:team IS NULL OR coalesce(job.team, done.team, 'default') = :team)
ORDER BY line.at DESC, line.job_id DESC, line.fence DESC, line.number DESC
LIMIT :limit;
