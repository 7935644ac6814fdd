-- name: lock_claimed
SELECT id, state, fence
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: lock_limits
SELECT key AS limit_key, concurrency, gap, burst
FROM mainspring_limits
WHERE key IN (SELECT value FROM json_each(:keys));

-- What has become of a breaker stays. With other numbers those that wait may go on sooner, so somebody is to look at once.
-- name: put_limits
INSERT INTO mainspring_limits (key, concurrency, gap, burst, breaker)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
FROM json_each(:limits)
WHERE TRUE
ON CONFLICT (key) DO UPDATE
SET concurrency = excluded.concurrency, gap = excluded.gap, burst = excluded.burst,
    release_at = CASE WHEN release_at IS NOT NULL THEN :now END
RETURNING release_at IS NOT NULL AS waiting;

-- name: look_at_limits
{standing};

-- name: hold
INSERT INTO mainspring_slots (key, job_id)
SELECT value ->> 0, value ->> 1
FROM json_each(:slots);

-- Says how those stand then for which it matters: to count the slots of one that nobody waits for would take longer than
-- to give them back.
-- name: free
DELETE FROM mainspring_slots
WHERE (job_id, key) IN (SELECT value ->> 1, value ->> 0 FROM json_each(:slots));

{standing} AND (
    breaker IS NOT NULL OR EXISTS (SELECT 1 FROM mainspring_jobs WHERE waits_for = mainspring_limits.key)
);

-- name: slots_of
SELECT key AS limit_key, job_id
FROM mainspring_slots
WHERE job_id IN (SELECT value FROM json_each(:ids));

-- What nobody could claim leaves its place to others.
-- name: release
UPDATE mainspring_jobs
SET state = 'ready', waits_for = NULL
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_jobs
    WHERE waits_for = :key
      AND task NOT IN (SELECT name FROM mainspring_pauses WHERE kind = 'task')
      AND queue NOT IN (SELECT name FROM mainspring_pauses WHERE kind = 'queue')
    ORDER BY rank, rowid
    LIMIT :room
)
RETURNING queue;

-- name: move_limits
UPDATE mainspring_limits
SET full_at = moved.value ->> 0,
    release_at = moved.value ->> 1,
    breaker = coalesce(moved.value ->> 2, breaker)
FROM json_each(:moved) AS moved
WHERE mainspring_limits.key = moved.key;

-- What lies beyond all that would be put off is from before the clock was set back.
-- name: lock_due_limits
SELECT key AS limit_key
FROM mainspring_limits
WHERE release_at <= :now OR release_at > :now + :beyond
ORDER BY release_at
LIMIT :limit;

-- name: look_at_once
UPDATE mainspring_limits
SET release_at = :now
WHERE release_at IS NOT NULL;

-- name: next_release
SELECT release_at - :now AS wait_us
FROM mainspring_limits
WHERE release_at IS NOT NULL
ORDER BY release_at
LIMIT 1;

-- name: slot_holders
SELECT job_id
FROM mainspring_slots
WHERE key = :key
ORDER BY job_id
LIMIT :limit;

-- name: limits
SELECT key AS limit_key, concurrency, gap, burst,
       (SELECT count(*) FROM mainspring_slots AS slot WHERE slot.key = mainspring_limits.key) AS held,
       (SELECT count(*) FROM mainspring_jobs WHERE waits_for = mainspring_limits.key) AS waiters
FROM mainspring_limits
WHERE breaker IS NULL AND (:key IS NULL OR key = :key)
ORDER BY key;

-- name: breakers
SELECT :now AS now_at, key AS limit_key, breaker,
       (SELECT count(*) FROM mainspring_jobs WHERE waits_for = mainspring_limits.key) AS waiters,
       (SELECT count(*) FROM mainspring_slots AS slot WHERE slot.key = mainspring_limits.key) AS held
FROM mainspring_limits
WHERE breaker IS NOT NULL AND (:key IS NULL OR key = :key)
ORDER BY key;

-- What nobody holds, nobody waits for, and nothing would change if it were made again.
-- name: prune_limits
DELETE FROM mainspring_limits
WHERE key IN (
    SELECT key
    FROM mainspring_limits
    WHERE release_at IS NULL AND (full_at IS NULL OR full_at < :now - :age)
      AND NOT EXISTS (SELECT 1 FROM mainspring_slots AS slot WHERE slot.key = mainspring_limits.key)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;
