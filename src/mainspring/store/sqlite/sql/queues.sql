-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: pause_claims
INSERT INTO mainspring_pauses (kind, name, paused_by, reason, paused_at)
VALUES (:kind, :name, :by, :reason, :now)
ON CONFLICT (kind, name) DO UPDATE SET paused_by = excluded.paused_by, reason = excluded.reason
RETURNING kind, name, paused_by, reason, paused_at;

-- name: resume_claims
DELETE FROM mainspring_pauses
WHERE kind = :kind AND name = :name
RETURNING kind, name;

-- name: pauses
SELECT kind, name, paused_by, reason, paused_at
FROM mainspring_pauses
ORDER BY kind, name;

-- name: backlog
SELECT queue, state, count(*) AS jobs, max(:now - run_at) AS waited_us
FROM mainspring_jobs
WHERE NOT :nobodys OR team IS NULL
GROUP BY queue, state;

-- name: backlog_of
SELECT queue, state, count(*) AS jobs, max(:now - run_at) AS waited_us
FROM mainspring_jobs
WHERE team = :team
GROUP BY queue, state;

-- It is ranked by nothing new, so there is nothing to rank anew.
-- name: give_queue
INSERT INTO mainspring_queues (name, team, changes)
VALUES (:name, :team, 0)
ON CONFLICT (name) DO UPDATE SET team = excluded.team;

-- name: queue_owners
SELECT name, team
FROM mainspring_queues
WHERE team IS NOT NULL;

-- To say the same again changes nothing.
-- name: set_ageing
INSERT INTO mainspring_queues (name, ageing)
VALUES (:name, :ageing)
ON CONFLICT (name) DO UPDATE
SET ageing = excluded.ageing, was = ageing, changes = changes + 1
WHERE ageing IS NOT excluded.ageing;

-- name: ageing
SELECT name, ageing
FROM mainspring_queues
WHERE ageing IS NOT NULL;

-- Queues that have not been ranked anew since their ageing was changed, and those where a job is ready whose place was
-- told by whoever had not seen the change yet.
-- name: misranked
SELECT name, was, changes
FROM mainspring_queues
WHERE ranked < changes
   OR CASE WHEN ageing IS NULL
           THEN (SELECT rank FROM mainspring_jobs WHERE state = 'ready' AND queue = name ORDER BY rank LIMIT 1)
                < 9007199254740992
           ELSE (SELECT rank FROM mainspring_jobs WHERE state = 'ready' AND queue = name ORDER BY rank DESC LIMIT 1)
                >= 9007199254740992 END
ORDER BY name;

-- Jobs that have their new place already keep it: this may be run again. So do those that have a turn, where ageing goes.
-- name: rerank
UPDATE mainspring_jobs
SET rank = run_at + {precedence}
         + CASE WHEN rank - run_at - coalesce(-priority * :was, {strictly}) BETWEEN 0 AND 999999
                THEN rank - run_at - coalesce(-priority * :was, {strictly}) ELSE 0 END
WHERE rowid IN (SELECT rowid FROM mainspring_jobs WHERE queue = :queue AND id > :after ORDER BY id LIMIT :limit)
  AND rank - run_at - {precedence} NOT BETWEEN 0 AND 999999
  AND (fair IS NULL OR min(rank, run_at + {precedence}) < 9007199254740992);

SELECT id
FROM (SELECT id FROM mainspring_jobs WHERE queue = :queue AND id > :after ORDER BY id LIMIT :limit)
ORDER BY id DESC
LIMIT 1;

-- name: ranked
UPDATE mainspring_queues
SET ranked = :changes
WHERE name = :name AND ranked < :changes;
