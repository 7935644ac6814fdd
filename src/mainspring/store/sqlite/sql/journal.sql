-- name: lock_running
SELECT job.id
FROM json_each(:attempts) CROSS JOIN mainspring_jobs AS job
    ON job.id = value ->> 0 AND job.fence = value ->> 1 AND job.state = 'running';

-- name: record_lines
INSERT INTO mainspring_logs (job_id, fence, number, at, level, message)
SELECT job.id, job.fence, value ->> 2, :now, value ->> 3, value ->> 4
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
SELECT fence, number, at, level, message
FROM mainspring_logs
WHERE job_id = :job_id AND (fence, number) > (:fence, :number)
ORDER BY fence, number
LIMIT :limit;
