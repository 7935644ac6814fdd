-- As in settle, 'running' comes out of a CTE, away from the planner, which would else walk all that runs; and the array of
-- ids has it use the primary key even when it takes the table for empty.
-- A statement of its own: one that begins after it sees the lines that an earlier try of the same call has written,
-- and until the end of the transaction the attempts stay what they are.
-- name: lock_running
WITH told AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, 'running' AS state
    FROM jsonb_array_elements(CAST(:attempts AS jsonb)) AS attempt (fields)
)
SELECT job.id
FROM told JOIN mainspring.jobs AS job
    ON job.id = told.job_id AND job.fence = told.fence AND job.state = told.state
WHERE job.id = ANY (ARRAY(SELECT job_id FROM told))
ORDER BY job.id
FOR UPDATE OF job;

-- Differs from SQLite: the key of a line has its time in it, so whether the line is known must be asked. OFFSET keeps
-- that a question for each line, where a join would read all logs. A day before the start of the attempt is enough
-- to look at, unless the server's clock is set back by more.
-- name: record_lines
WITH {clock},
said AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, 'running' AS state,
           CAST(fields ->> 2 AS integer) AS number, fields ->> 3 AS level, fields ->> 4 AS message,
           fields ->> 5 AS logger
    FROM jsonb_array_elements(CAST(:lines AS jsonb)) AS line (fields)
)
INSERT INTO mainspring.logs (job_id, fence, number, at, level, message, logger)
SELECT said.job_id, said.fence, said.number, now, said.level, said.message, said.logger
FROM clock, said JOIN mainspring.jobs AS job
    ON job.id = said.job_id AND job.fence = said.fence AND job.state = said.state
WHERE job.id = ANY (ARRAY(SELECT job_id FROM said)) AND NOT EXISTS (
    SELECT FROM mainspring.logs AS known
    WHERE known.job_id = said.job_id AND known.fence = said.fence AND known.number = said.number
      AND known.at >= job.started_at - interval '1 day'
    OFFSET 0
)
ON CONFLICT DO NOTHING;

-- name: record_progress
WITH told AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, 'running' AS state,
           fields ->> 2 AS progress
    FROM jsonb_array_elements(CAST(:progress AS jsonb)) AS report (fields)
)
UPDATE mainspring.jobs AS job
SET progress = told.progress
FROM told
WHERE job.id = ANY (ARRAY(SELECT job_id FROM told))
  AND job.id = told.job_id AND job.fence = told.fence AND job.state = told.state;

-- name: logs
SELECT fence, number, at, level, message, logger
FROM mainspring.logs
WHERE job_id = :job_id AND (fence, number) > (:fence, :number)
  AND (CAST(:contains AS text) IS NULL OR strpos(message, :contains) > 0)
  AND lower(level) NOT IN (SELECT json_array_elements_text(CAST(:left_out AS json)))
ORDER BY fence, number
LIMIT :limit;

-- A line whose job was pruned is nobody's, and so nobody finds it: whose it was can't be told any more.
-- Differs from SQLite: LIMIT keeps that a question for each line, where a join would read all jobs that there are.
-- name: find_logs
SELECT line.job_id, whose.task, line.fence, line.number, line.at, line.level, line.message, line.logger
FROM mainspring.logs AS line
CROSS JOIN LATERAL (
    SELECT task, team FROM mainspring.jobs WHERE id = line.job_id
    UNION ALL
    SELECT task, team FROM mainspring.jobs_done WHERE id = line.job_id
    LIMIT 1
) AS whose
WHERE line.at >= :since AND line.at < :before
  AND (CAST(:contains AS text) IS NULL OR strpos(line.message, :contains) > 0)
  AND lower(line.level) NOT IN (SELECT json_array_elements_text(CAST(:left_out AS json)))
  AND (CAST(:task AS text) IS NULL OR whose.task = :task)
  AND (CAST(:team AS text) IS NULL OR coalesce(whose.team, 'default') = :team)
ORDER BY line.at DESC, line.job_id DESC, line.fence DESC, line.number DESC
LIMIT :limit;
