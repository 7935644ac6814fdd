-- Take the keys that are free, wait for and lock those that are not, and say who has each. In the order of keys, so that
-- two batches with the same keys do not wait for each other in a circle.
-- name: take_idempotency
WITH {clock}, {idempotency_asked}
INSERT INTO mainspring.idempotency (key, job_id, ttl, look_at)
SELECT key, job_id, ttl, {idempotency_look}
FROM asked, clock
ORDER BY key
ON CONFLICT (key) DO UPDATE SET key = excluded.key
RETURNING key, job_id;

-- A statement of its own: one that waited for a lock would not see the job that was stored meanwhile.
-- name: find_idempotency
WITH {clock}
SELECT key
FROM mainspring.idempotency AS held, clock
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json)))) AND {idempotency_in_force};

-- name: keep_idempotency
WITH {clock}, {idempotency_asked}
UPDATE mainspring.idempotency AS held
SET job_id = asked.job_id, ttl = asked.ttl, look_at = now + greatest(asked.ttl, interval '1 minute')
FROM asked, clock
WHERE held.key = asked.key;

-- Rows whose time to be looked at has come: those in force get a later one, the others go. Says whether there were some.
-- A row that is given to a new job meanwhile has a later time, and drops out as it is locked.
-- name: prune_idempotency
WITH {clock},
held AS MATERIALIZED (
    SELECT key, job_id, ttl
    FROM mainspring.idempotency, clock
    WHERE look_at <= now
    ORDER BY look_at
    LIMIT :limit
    FOR UPDATE OF idempotency SKIP LOCKED
),
judged AS MATERIALIZED (
    SELECT key, {idempotency_in_force} AS in_force,
           coalesce(
               (SELECT max(done.finished_at) + ttl FROM mainspring.jobs_done AS done WHERE done.id = job_id),
               {idempotency_look}) AS look_at
    FROM held, clock
),
kept AS (
    UPDATE mainspring.idempotency
    SET look_at = judged.look_at
    FROM judged
    WHERE idempotency.key = judged.key AND judged.in_force
),
gone AS (
    DELETE FROM mainspring.idempotency
    USING judged
    WHERE idempotency.key = judged.key AND NOT judged.in_force
)
SELECT count(*) AS due
FROM held
HAVING count(*) > 0;
