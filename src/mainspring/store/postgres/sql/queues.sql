-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: pause_claims
WITH {clock}
INSERT INTO mainspring.pauses (kind, name, paused_by, reason, paused_at)
SELECT :kind, :name, :by, :reason, now
FROM clock
ON CONFLICT (kind, name) DO UPDATE SET paused_by = excluded.paused_by, reason = excluded.reason
RETURNING kind, name, paused_by, reason, paused_at;

-- name: resume_claims
DELETE FROM mainspring.pauses
WHERE kind = :kind AND name = :name
RETURNING kind, name;

-- name: pauses
SELECT kind, name, paused_by, reason, paused_at
FROM mainspring.pauses
ORDER BY kind, name;

-- name: backlog
WITH {clock}
SELECT queue, state, count(*) AS jobs, CAST(max(extract(epoch FROM now - run_at)) * 1000000 AS bigint) AS waited_us
FROM mainspring.jobs, clock
WHERE NOT CAST(:nobodys AS boolean) OR team IS NULL
GROUP BY queue, state;

-- name: backlog_of
WITH {clock}
SELECT queue, state, count(*) AS jobs, CAST(max(extract(epoch FROM now - run_at)) * 1000000 AS bigint) AS waited_us
FROM mainspring.jobs, clock
WHERE team = :team
GROUP BY queue, state;

-- It is ranked by nothing new, so there is nothing to rank anew.
-- name: give_queue
INSERT INTO mainspring.queues (name, team, changes)
VALUES (:name, CAST(:team AS text), 0)
ON CONFLICT (name) DO UPDATE SET team = excluded.team;

-- name: queue_owners
SELECT name, team
FROM mainspring.queues
WHERE team IS NOT NULL;

-- To say the same again changes nothing.
-- name: set_ageing
INSERT INTO mainspring.queues AS queue (name, ageing)
VALUES (:name, CAST(:ageing AS interval))
ON CONFLICT (name) DO UPDATE
SET ageing = excluded.ageing, was = queue.ageing, changes = queue.changes + 1
WHERE queue.ageing IS DISTINCT FROM excluded.ageing;

-- name: ageing
SELECT name, ageing
FROM mainspring.queues
WHERE ageing IS NOT NULL;

-- Queues that have not been ranked anew since their ageing was changed, and those where a job is ready whose place was
-- told by whoever had not seen the change yet.
-- name: misranked
SELECT name, was, changes
FROM mainspring.queues
WHERE ranked < changes
   OR CASE WHEN ageing IS NULL
           THEN (SELECT rank FROM mainspring.jobs WHERE state = 'ready' AND queue = name ORDER BY rank LIMIT 1)
                < 9007199254740992
           ELSE (SELECT rank FROM mainspring.jobs WHERE state = 'ready' AND queue = name ORDER BY rank DESC LIMIT 1)
                >= 9007199254740992 END
ORDER BY name;

-- Jobs that have their new place already keep it: this may be run again. So do those that have a turn, where ageing goes.
-- name: rerank
WITH batch AS MATERIALIZED (
    SELECT id
    FROM mainspring.jobs
    WHERE queue = :queue AND id > CAST(:after AS uuid)
    ORDER BY id
    LIMIT (SELECT CAST(:limit AS bigint))
    FOR UPDATE
),
due AS MATERIALIZED (
    SELECT id, queue, priority, fair, rank, CAST(extract(epoch FROM run_at) * 1000000 AS bigint) AS due_us,
           CAST(:was AS interval) AS ageing
    FROM mainspring.jobs
    WHERE id = ANY (ARRAY(SELECT id FROM batch))
),
placed AS MATERIALIZED (
    SELECT id, fair, rank, due_us + {precedence} AS place,
           rank - due_us - coalesce(-priority * {ageing_us}, {strictly}) AS position
    FROM due
),
moved AS (
    UPDATE mainspring.jobs AS job
    SET rank = place + CASE WHEN position BETWEEN 0 AND 999999 THEN position ELSE 0 END
    FROM placed
    WHERE job.id = placed.id AND job.rank = placed.rank AND placed.rank - place NOT BETWEEN 0 AND 999999
      AND (placed.fair IS NULL OR least(placed.rank, place) < 9007199254740992)
)
SELECT id
FROM batch
ORDER BY id DESC
LIMIT 1;

-- name: ranked
UPDATE mainspring.queues
SET ranked = :changes
WHERE name = :name AND ranked < :changes;
