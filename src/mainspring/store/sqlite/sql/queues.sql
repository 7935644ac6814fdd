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

-- Whether any unfinished job is another team's than the default one's.
-- name: any_teams
SELECT EXISTS (SELECT 1 FROM mainspring_jobs WHERE team IS NOT NULL) AS anybodys;

-- In which states jobs of which queues wait, found by leaps from one to the next.
-- name: backlog_kinds
WITH RECURSIVE ready (queue) AS (
    SELECT (SELECT queue FROM mainspring_jobs INDEXED BY mainspring_jobs_ready WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.queue
        FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_ready
        WHERE job.state = 'ready' AND job.queue > ready.queue
        ORDER BY job.queue
        LIMIT 1
    )
    FROM ready
    WHERE ready.queue IS NOT NULL
),
aside (state, queue) AS (
    SELECT kind.column1, (
        SELECT job.queue
        FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_aside
        WHERE job.state = kind.column1 AND job.{is_aside}
        ORDER BY job.queue
        LIMIT 1
    )
    FROM (VALUES ('blocked'), ('scheduled'), ('retrying'), ('paused')) AS kind
    UNION ALL
    SELECT aside.state, (
        SELECT job.queue
        FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_aside
        WHERE job.state = aside.state AND job.queue > aside.queue AND job.{is_aside}
        ORDER BY job.queue
        LIMIT 1
    )
    FROM aside
    WHERE aside.queue IS NOT NULL
)
SELECT 'ready' AS state, queue
FROM ready
WHERE queue IS NOT NULL
UNION ALL
SELECT state, queue
FROM aside
WHERE queue IS NOT NULL;

-- The same of the jobs of a team other than the default one.
-- name: backlog_kinds_of
WITH RECURSIVE kinds (state, queue) AS (
    SELECT kind.column1, (
        SELECT job.queue
        FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_backlog
        WHERE job.team = :team AND job.state = kind.column1 AND job.state <> 'running'
        ORDER BY job.queue
        LIMIT 1
    )
    FROM (VALUES ('ready'), ('blocked'), ('scheduled'), ('retrying'), ('paused')) AS kind
    UNION ALL
    SELECT kinds.state, (
        SELECT job.queue
        FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_backlog
        WHERE job.team = :team AND job.state = kinds.state AND job.state <> 'running' AND job.queue > kinds.queue
        ORDER BY job.queue
        LIMIT 1
    )
    FROM kinds
    WHERE kinds.queue IS NOT NULL
)
SELECT state, queue
FROM kinds
WHERE queue IS NOT NULL;

-- As long as all jobs are the default team's, nobody's rows are looked at: the indexes tell how many there are. Else those
-- of others are looked at too, and are as many as they like: so the limit is on what is looked at, not on what is found.
-- name: count_waiting
WITH counted AS MATERIALIZED (
    SELECT kind.queue, kind.state, CASE WHEN kind.state = 'ready' THEN (
        SELECT json_array(count(*), count(others))
        FROM (
            SELECT CASE WHEN :nobodys THEN job.team END AS others
            FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_ready
            WHERE job.state = 'ready' AND job.queue = kind.queue
            LIMIT :most
        ) AS ready
    ) ELSE (
        SELECT json_array(count(*), count(others))
        FROM (
            SELECT CASE WHEN :nobodys THEN job.team END AS others
            FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_aside
            WHERE job.{is_aside} AND job.state = kind.state AND job.queue = kind.queue
            LIMIT :most
        ) AS aside
    ) END AS looked
    FROM (SELECT value ->> 0 AS queue, value ->> 1 AS state FROM json_each(:kinds)) AS kind
)
SELECT queue, state, (looked ->> 0) - (looked ->> 1) AS jobs, (looked ->> 0) >= :most AS more
FROM counted;

-- name: count_waiting_of
WITH counted AS MATERIALIZED (
    SELECT kind.queue, kind.state, (
        SELECT count(*)
        FROM (
            SELECT 1 FROM mainspring_jobs AS job INDEXED BY mainspring_jobs_backlog
            WHERE job.team = :team AND job.state = kind.state AND job.state <> 'running' AND job.queue = kind.queue
            LIMIT :most
        ) AS waiting
    ) AS jobs
    FROM (SELECT value ->> 0 AS queue, value ->> 1 AS state FROM json_each(:kinds)) AS kind
)
SELECT queue, state, jobs, jobs >= :most AS more
FROM counted;

-- There are no more than the fleet can run.
-- name: count_running
SELECT queue, count(*) AS jobs
FROM mainspring_jobs INDEXED BY mainspring_jobs_held
WHERE state = 'running' AND (:team IS NULL OR coalesce(team, 'default') = :team)
GROUP BY queue;

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
