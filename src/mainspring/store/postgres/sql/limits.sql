-- Jobs before limits, and limits in the order of their keys: whoever needs both locks them like that.
-- name: lock_claimed
SELECT id, state, fence, holds
FROM mainspring.jobs
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
ORDER BY id
FOR UPDATE;

-- name: lock_limits
SELECT key AS limit_key, concurrency, gap, burst
FROM mainspring.limits
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))
ORDER BY key
FOR UPDATE;

-- name: put_limits
INSERT INTO mainspring.limits (key, concurrency, gap, burst)
SELECT fields ->> 0, CAST(fields ->> 1 AS integer), CAST(fields ->> 2 AS bigint) * interval '1 microsecond',
       CAST(fields ->> 3 AS integer)
FROM jsonb_array_elements(CAST(:limits AS jsonb)) AS wanted (fields)
ORDER BY fields ->> 0
ON CONFLICT (key) DO UPDATE
SET concurrency = excluded.concurrency, gap = excluded.gap, burst = excluded.burst;

-- Apart from the lock: only a statement that begins after it sees what the one who had it before has done.
-- name: look_at_limits
WITH {clock}
SELECT now AS now_at, key AS limit_key, concurrency, gap, burst, full_at,
       (SELECT count(*) FROM mainspring.slots WHERE slots.key = limits.key) AS held,
       EXISTS (SELECT FROM mainspring.jobs WHERE waits_for = limits.key) AS waiting
FROM mainspring.limits, clock
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))));

-- name: hold
WITH given AS MATERIALIZED (
    SELECT CAST(:held AS jsonb) AS held
),
taken AS (
    INSERT INTO mainspring.slots (key, job_id)
    SELECT slot.key, CAST(job.key AS uuid)
    FROM given, jsonb_each(held) AS job, jsonb_array_elements_text(job.value) AS slot (key)
)
UPDATE mainspring.jobs
SET holds = CAST((SELECT held FROM given) -> CAST(id AS text) AS text)
WHERE id = ANY (ARRAY(SELECT CAST(jsonb_object_keys(held) AS uuid) FROM given));

-- name: free
DELETE FROM mainspring.slots
WHERE (key, job_id) IN (
    SELECT fields ->> 0, CAST(fields ->> 1 AS uuid)
    FROM jsonb_array_elements(CAST(:slots AS jsonb)) AS slot (fields)
);

-- What somebody has in his hands is left to him: to wait for it while the limit is locked could be to wait in a circle.
-- name: release
UPDATE mainspring.jobs
SET state = 'ready', waits_for = NULL
WHERE id = ANY (ARRAY(
    SELECT id
    FROM mainspring.jobs
    WHERE waits_for = :key
    ORDER BY rank
    LIMIT (SELECT CAST(:room AS bigint))
    FOR UPDATE SKIP LOCKED
))
RETURNING queue;

-- name: move_limits
WITH given AS MATERIALIZED (
    SELECT CAST(:moved AS jsonb) AS moved
)
UPDATE mainspring.limits
SET full_at = timestamptz 'epoch'
              + CAST((SELECT moved FROM given) -> key ->> 0 AS bigint) * interval '1 microsecond',
    release_at = timestamptz 'epoch'
                 + CAST((SELECT moved FROM given) -> key ->> 1 AS bigint) * interval '1 microsecond'
WHERE key = ANY (ARRAY(SELECT jsonb_object_keys(moved) FROM given));

-- name: lock_due_limits
WITH {clock}
SELECT key AS limit_key
FROM mainspring.limits
WHERE release_at <= (SELECT now FROM clock)
ORDER BY release_at
LIMIT (SELECT CAST(:limit AS bigint))
FOR UPDATE SKIP LOCKED;

-- name: next_release
WITH {clock}
SELECT (extract(epoch FROM release_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.limits, clock
WHERE release_at IS NOT NULL
ORDER BY release_at
LIMIT 1;

-- name: slot_holders
SELECT job_id
FROM mainspring.slots
WHERE key = :key
ORDER BY job_id
LIMIT :limit;

-- What nobody holds, nobody waits for, and nothing would change if it were made again.
-- name: prune_limits
WITH {clock},
old AS MATERIALIZED (
    SELECT key
    FROM mainspring.limits, clock
    WHERE release_at IS NULL AND (full_at IS NULL OR full_at < now - CAST(:age AS interval))
      AND NOT EXISTS (SELECT FROM mainspring.slots WHERE slots.key = limits.key)
    LIMIT :limit
    FOR UPDATE OF limits SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.limits
    WHERE key = ANY (ARRAY(SELECT key FROM old))
    RETURNING key
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
