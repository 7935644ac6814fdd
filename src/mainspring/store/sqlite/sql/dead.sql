-- Dead letters. The first four are answered from the index of failed jobs, but for the rows that they show.
-- name: dead_groups
WITH grouped AS MATERIALIZED (
    SELECT fingerprint, count(*) AS letters, min(finished_at) AS first_at, max(finished_at) AS last_at,
           max(id) AS newest
    FROM {dead}
    GROUP BY fingerprint
    ORDER BY last_at DESC, fingerprint
    LIMIT :limit
)
SELECT grouped.fingerprint, sample.task, sample.error, letters, first_at, last_at, sample.id
FROM grouped CROSS JOIN mainspring_jobs_done AS sample ON sample.id = grouped.newest
ORDER BY last_at DESC, grouped.fingerprint;

-- name: dead_fingerprints
SELECT fingerprint
FROM mainspring_jobs_done INDEXED BY mainspring_jobs_done_dead
WHERE state = 'failed' AND substr(fingerprint, 1, length(:prefix)) = :prefix
  AND (:team IS NULL OR coalesce(team, 'default') = :team)
GROUP BY fingerprint
ORDER BY fingerprint
LIMIT :limit;

-- name: dead_count
SELECT count(*) AS letters, max(finished_at) AS last_at
FROM {dead} AND (:group IS NULL OR fingerprint = :group);

-- Of those that are looked at, which are anybody's: who looked on for more of a team might not come to an end.
-- name: dead_among
SELECT count(*) FILTER (WHERE :team IS NULL OR coalesce(team, 'default') = :team) AS letters, count(*) AS looked
FROM (
    SELECT team
    FROM mainspring_jobs_done INDEXED BY mainspring_jobs_done_dead
    WHERE state = 'failed'
    LIMIT :most
) AS anybodys;

-- name: dead_letters
SELECT id, finished_at
FROM {dead} AND (:group IS NULL OR fingerprint = :group) AND id > coalesce(:after, '')
ORDER BY id
LIMIT :limit;

-- name: dead_page
SELECT {done}
FROM mainspring_jobs_done
WHERE id IN (
    SELECT id
    FROM {dead} AND (:group IS NULL OR fingerprint = :group) AND id < coalesce(:before, 'g')
    ORDER BY id DESC
    LIMIT :limit
)
ORDER BY id DESC;

-- It stays in history until it is pruned.
-- name: discard
UPDATE mainspring_jobs_done
SET state = decided.state, reason = decided.reason, fingerprint = NULL
FROM (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS source, value ->> 3 AS state,
           value ->> 4 AS reason
    FROM json_each(:settlements)
) AS decided
WHERE mainspring_jobs_done.id = decided.job_id
  AND mainspring_jobs_done.state = decided.source
  AND mainspring_jobs_done.fence = decided.fence
RETURNING id;
