-- name: look_at_signals
SELECT count(*) FILTER (WHERE NOT taken) AS untaken, coalesce(max(id = :signal_id), FALSE) AS known
FROM mainspring_signals
WHERE job_id = :job_id;

-- The row of the job was read in this transaction.
-- name: send_signal
INSERT INTO mainspring_signals (job_id, name, id, value, at)
SELECT job.id, :name, :signal_id, :value, :now
FROM mainspring_jobs AS job
WHERE job.id = :job_id
ON CONFLICT DO NOTHING;

-- By the database's clock: the ids are made by those who send, whose clocks may be wrong.
-- name: take_signal
UPDATE mainspring_signals
SET taken = TRUE
WHERE (job_id, name, id) = (
    SELECT job_id, name, id
    FROM mainspring_signals
    WHERE job_id = (SELECT id FROM mainspring_jobs WHERE {holder}) AND name = :signal AND NOT taken
    ORDER BY at, id
    LIMIT 1
)
RETURNING value;

-- name: sent_meanwhile
SELECT DISTINCT sent.job_id
FROM json_each(:waits) AS wait CROSS JOIN mainspring_signals AS sent
    ON sent.job_id = wait.value ->> 0 AND sent.name = wait.value ->> 1
WHERE NOT sent.taken;

-- As for steps.
-- name: prune_signals
SELECT job_id
FROM (
    SELECT job_id
    FROM mainspring_signals
    {next_jobs}
)
ORDER BY job_id DESC
LIMIT 1;

DELETE FROM mainspring_signals AS kept
WHERE job_id IN (
    SELECT job_id
    FROM mainspring_signals
    {next_jobs}
) {orphaned};
