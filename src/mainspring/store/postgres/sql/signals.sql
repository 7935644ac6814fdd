-- name: look_at_signals
SELECT count(*) FILTER (WHERE NOT taken) AS untaken, coalesce(bool_or(id = :signal_id), FALSE) AS known
FROM mainspring.signals
WHERE job_id = :job_id;

-- The row of the job is locked since `lock_live`.
-- name: send_signal
WITH {clock}
INSERT INTO mainspring.signals (job_id, name, id, value, at)
SELECT job.id, :name, :signal_id, :value, now
FROM clock, mainspring.jobs AS job
WHERE job.id = :job_id
ON CONFLICT DO NOTHING;

-- By the database's clock: the ids are made by those who send, whose clocks may be wrong.
-- name: take_signal
WITH {holder}
UPDATE mainspring.signals
SET taken = TRUE
WHERE (job_id, name, id) = (
    SELECT job_id, name, id
    FROM mainspring.signals
    WHERE job_id = (SELECT id FROM held) AND name = :signal AND NOT taken
    ORDER BY at, id
    LIMIT 1
)
RETURNING value;

-- name: sent_meanwhile
SELECT DISTINCT sent.job_id
FROM jsonb_array_elements(CAST(:waits AS jsonb)) AS wait (fields) JOIN mainspring.signals AS sent
    ON sent.job_id = CAST(fields ->> 0 AS uuid) AND sent.name = fields ->> 1
WHERE sent.job_id = ANY (ARRAY(SELECT CAST(fields ->> 0 AS uuid) FROM jsonb_array_elements(CAST(:waits AS jsonb)) AS one (fields)))
  AND NOT sent.taken;

-- As for steps.
-- name: prune_signals
WITH page AS MATERIALIZED (
    SELECT job_id
    FROM mainspring.signals
    WHERE job_id > :after AND job_id < :made_before
    ORDER BY job_id
    LIMIT :limit
),
gone AS (
    DELETE FROM mainspring.signals AS kept
    WHERE job_id = ANY (ARRAY(SELECT job_id FROM page)) {orphaned}
)
SELECT job_id
FROM page
ORDER BY job_id DESC
LIMIT 1;
