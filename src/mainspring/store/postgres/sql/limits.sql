-- Jobs before limits, and limits in the order of their keys: whoever needs both locks them like that.
-- name: lock_claimed
SELECT id, state, fence
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

-- What has become of a breaker stays. With other numbers those that wait may go on sooner, so somebody is to look at once.
-- name: put_limits
WITH {clock}
INSERT INTO mainspring.limits AS known (key, concurrency, gap, burst, breaker)
SELECT fields ->> 0, CAST(fields ->> 1 AS integer), CAST(fields ->> 2 AS bigint) * interval '1 microsecond',
       CAST(fields ->> 3 AS integer), fields ->> 4
FROM jsonb_array_elements(CAST(:limits AS jsonb)) AS wanted (fields)
ORDER BY fields ->> 0
ON CONFLICT (key) DO UPDATE
SET concurrency = excluded.concurrency, gap = excluded.gap, burst = excluded.burst,
    release_at = CASE WHEN known.release_at IS NOT NULL THEN (SELECT now FROM clock) END
RETURNING release_at IS NOT NULL AS waiting;

-- Apart from the lock: only a statement that begins after it sees what the one who had it before has done.
-- name: look_at_limits
WITH {clock},
freed AS (
    SELECT CAST(NULL AS text) AS key
    WHERE FALSE
)
{standing};

-- name: hold
INSERT INTO mainspring.slots (key, job_id)
SELECT fields ->> 0, CAST(fields ->> 1 AS uuid)
FROM jsonb_array_elements(CAST(:slots AS jsonb)) AS slot (fields);

-- Says how those stand then for which it matters: to count the slots of one that nobody waits for would take longer than
-- to give them back.
-- name: free
WITH {clock},
freed AS (
    DELETE FROM mainspring.slots
    WHERE (job_id, key) IN (
        SELECT CAST(fields ->> 1 AS uuid), fields ->> 0
        FROM jsonb_array_elements(CAST(:slots AS jsonb)) AS slot (fields)
    )
    RETURNING key
)
{standing} AND (breaker IS NOT NULL OR EXISTS (SELECT FROM mainspring.jobs WHERE waits_for = limits.key));

-- name: slots_of
SELECT key AS limit_key, job_id
FROM mainspring.slots
WHERE job_id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)));

-- What somebody has in his hands is left to him: to wait for it while the limit is locked could be to wait in a circle. What
-- nobody could claim leaves its place to others. The planner walks the index in the order of rank, as in claim.
-- name: release
UPDATE mainspring.jobs
SET state = 'ready', waits_for = NULL
WHERE id = ANY (ARRAY(
    SELECT id
    FROM mainspring.jobs
    WHERE waits_for = :key
      AND CASE WHEN task IN (SELECT name FROM mainspring.pauses WHERE kind = 'task') THEN 0
               WHEN queue IN (SELECT name FROM mainspring.pauses WHERE kind = 'queue') THEN 0 ELSE 1 END <> 0
    ORDER BY rank, id
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
                 + CAST((SELECT moved FROM given) -> key ->> 1 AS bigint) * interval '1 microsecond',
    breaker = coalesce((SELECT moved FROM given) -> key ->> 2, breaker)
WHERE key = ANY (ARRAY(SELECT jsonb_object_keys(moved) FROM given));

-- What lies beyond all that would be put off is from before the clock was set back.
-- name: lock_due_limits
WITH {clock}
SELECT key AS limit_key
FROM mainspring.limits
WHERE release_at <= (SELECT now FROM clock) OR release_at > (SELECT now + CAST(:beyond AS interval) FROM clock)
ORDER BY release_at
LIMIT (SELECT CAST(:limit AS bigint))
FOR UPDATE SKIP LOCKED;

-- Those that somebody has in his hands are looked at a little later, as ever.
-- name: look_at_once
WITH {clock}
UPDATE mainspring.limits
SET release_at = (SELECT now FROM clock)
WHERE key = ANY (ARRAY(SELECT key FROM mainspring.limits WHERE release_at IS NOT NULL FOR UPDATE SKIP LOCKED));

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

-- name: limits
SELECT key AS limit_key, concurrency, gap, burst,
       (SELECT count(*) FROM mainspring.slots AS slot WHERE slot.key = limits.key) AS held,
       (SELECT count(*) FROM mainspring.jobs WHERE waits_for = limits.key) AS waiters
FROM mainspring.limits
WHERE breaker IS NULL AND (CAST(:key AS text) IS NULL OR key = :key)
ORDER BY key;

-- name: breakers
WITH {clock}
SELECT now AS now_at, key AS limit_key, breaker,
       (SELECT count(*) FROM mainspring.jobs WHERE waits_for = limits.key) AS waiters,
       (SELECT count(*) FROM mainspring.slots WHERE slots.key = limits.key) AS held
FROM mainspring.limits, clock
WHERE breaker IS NOT NULL AND (CAST(:key AS text) IS NULL OR key = :key)
ORDER BY key;

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
