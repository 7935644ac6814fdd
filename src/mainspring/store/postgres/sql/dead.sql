-- Dead letters. The first four are answered from the index of failed jobs, but for the rows that they show.
-- name: dead_groups
WITH grouped AS MATERIALIZED (
    SELECT fingerprint, count(*) AS letters, min(finished_at) AS first_at, max(finished_at) AS last_at
    FROM {dead}
    GROUP BY fingerprint
    ORDER BY last_at DESC, fingerprint
    LIMIT :limit
)
SELECT grouped.fingerprint, sample.task, sample.error, letters, first_at, last_at, sample.id
FROM grouped CROSS JOIN LATERAL (
    SELECT id, task, error
    FROM {dead} AND fingerprint = grouped.fingerprint
    ORDER BY id DESC
    LIMIT 1
) AS sample
ORDER BY last_at DESC, fingerprint;

-- name: dead_fingerprints
SELECT fingerprint
FROM mainspring.jobs_done
WHERE state = 'failed' AND starts_with(fingerprint, :prefix)
  AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team)
GROUP BY fingerprint
ORDER BY fingerprint
LIMIT :limit;

-- name: dead_count
SELECT count(*) AS letters, max(finished_at) AS last_at
FROM {dead} AND (CAST(:group AS text) IS NULL OR fingerprint = :group);

-- Of those that are looked at, which are anybody's: who looked on for more of a team might not come to an end.
-- name: dead_among
SELECT count(*) FILTER (WHERE CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team) AS letters, count(*) AS looked
FROM (
    SELECT team
    FROM mainspring.jobs_done
    WHERE state = 'failed'
    LIMIT (SELECT CAST(:most AS bigint))
) AS anybodys;

-- Here and in the next OFFSET keeps the order and the limit from the planner of what is within, who would else walk all
-- history by its primary key, for a few failed jobs among millions.
-- name: dead_letters
SELECT id, finished_at
FROM (
    SELECT id, finished_at
    FROM {dead} AND (CAST(:group AS text) IS NULL OR fingerprint = :group)
      AND id > coalesce(CAST(:after AS uuid), '00000000-0000-0000-0000-000000000000')
    OFFSET 0
) AS letters
ORDER BY id
LIMIT :limit;

-- name: dead_page
WITH shown AS MATERIALIZED (
    SELECT id
    FROM (
        SELECT id
        FROM {dead} AND (CAST(:group AS text) IS NULL OR fingerprint = :group)
          AND id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        OFFSET 0
    ) AS letters
    ORDER BY id DESC
    LIMIT :limit
)
SELECT {done}
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT id FROM shown))
ORDER BY id DESC;

-- It stays in history until its day is pruned; its rows are locked since `lock_done`.
-- name: discard
WITH decided AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS job_id, CAST(fields ->> 1 AS bigint) AS fence, fields ->> 2 AS source,
           fields ->> 3 AS state, fields ->> 4 AS reason
    FROM jsonb_array_elements(CAST(:settlements AS jsonb)) AS settlement (fields)
)
UPDATE mainspring.jobs_done AS done
SET state = decided.state, reason = decided.reason, fingerprint = NULL
FROM decided
WHERE done.id = ANY (ARRAY(SELECT job_id FROM decided))
  AND done.id = decided.job_id AND done.state = decided.source AND done.fence = decided.fence
RETURNING done.id;
