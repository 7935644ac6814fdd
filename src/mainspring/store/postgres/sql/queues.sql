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

-- Whether any unfinished job is another team's than the default one's.
-- name: any_teams
SELECT EXISTS (SELECT 1 FROM mainspring.jobs WHERE team IS NOT NULL) AS anybodys;

-- In which states jobs of which queues wait, found by leaps from one to the next.
-- name: backlog_kinds
WITH RECURSIVE ready (queue) AS (
    SELECT (SELECT queue FROM mainspring.jobs WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.queue
        FROM mainspring.jobs AS job
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
        FROM mainspring.jobs AS job
        WHERE job.state = kind.column1 AND job.{is_aside}
        ORDER BY job.queue
        LIMIT 1
    )
    FROM (VALUES ('blocked'), ('scheduled'), ('retrying'), ('paused')) AS kind
    UNION ALL
    SELECT aside.state, (
        SELECT job.queue
        FROM mainspring.jobs AS job
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
        FROM mainspring.jobs AS job
        WHERE job.team = :team AND job.state = kind.column1 AND job.state <> 'running'
        ORDER BY job.queue
        LIMIT 1
    )
    FROM (VALUES ('ready'), ('blocked'), ('scheduled'), ('retrying'), ('paused')) AS kind
    UNION ALL
    SELECT kinds.state, (
        SELECT job.queue
        FROM mainspring.jobs AS job
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
-- Differs from SQLite, which is told the indexes, in that all is asked for in their order: one plan must do for a queue
-- that has most of all jobs, and for one that has next to none. Nor is the planner told the limit: where it takes that for
-- more than there are, it would sort all.
-- name: count_waiting
WITH counted AS MATERIALIZED (
    SELECT kind.queue, kind.state, CASE WHEN kind.state = 'ready' THEN (
        SELECT ARRAY[count(*), count(others)]
        FROM (
            SELECT CASE WHEN CAST(:nobodys AS boolean) THEN job.team END AS others
            FROM mainspring.jobs AS job
            WHERE job.state = 'ready' AND job.queue = kind.queue
            ORDER BY job.rank
            LIMIT (SELECT CAST(:most AS bigint))
        ) AS ready
    ) ELSE (
        SELECT ARRAY[count(*), count(others)]
        FROM (
            SELECT CASE WHEN CAST(:nobodys AS boolean) THEN job.team END AS others
            FROM mainspring.jobs AS job
            WHERE job.{is_aside}
              AND (job.state, job.queue) >= (kind.state, kind.queue) AND (job.state, job.queue) <= (kind.state, kind.queue)
            ORDER BY job.state, job.queue
            LIMIT (SELECT CAST(:most AS bigint))
        ) AS aside
    ) END AS looked
    FROM (SELECT fields ->> 0 AS queue, fields ->> 1 AS state FROM json_array_elements(CAST(:kinds AS json)) AS one (fields)) AS kind
)
SELECT queue, state, looked[1] - looked[2] AS jobs, looked[1] >= CAST(:most AS bigint) AS more
FROM counted;

-- name: count_waiting_of
WITH counted AS MATERIALIZED (
    SELECT kind.queue, kind.state, (
        SELECT count(*)
        FROM (
            SELECT 1 FROM mainspring.jobs AS job
            WHERE job.team = :team AND job.state <> 'running'
              AND (job.state, job.queue) >= (kind.state, kind.queue) AND (job.state, job.queue) <= (kind.state, kind.queue)
            ORDER BY job.state, job.queue
            LIMIT (SELECT CAST(:most AS bigint))
        ) AS waiting
    ) AS jobs
    FROM (SELECT fields ->> 0 AS queue, fields ->> 1 AS state FROM json_array_elements(CAST(:kinds AS json)) AS one (fields)) AS kind
)
SELECT queue, state, jobs, jobs >= CAST(:most AS bigint) AS more
FROM counted;

-- There are no more than the fleet can run.
-- name: count_running
SELECT queue, count(*) AS jobs
FROM mainspring.jobs
WHERE state = 'running' AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team)
GROUP BY queue;

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
