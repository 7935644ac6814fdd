-- name: room_for_alert
SELECT count(*) AS alerts, count(*) FILTER (WHERE id = :id) AS known
FROM mainspring.alerts
WHERE scope IS NOT DISTINCT FROM CAST(:team AS text);

-- One that is known goes on as it stands, and is looked at again at once: by its new rule it may have resolved.
-- name: put_alert
WITH {clock}
INSERT INTO mainspring.alerts (id, scope, definition, every, status, since, look_at, created_at, changed_at)
SELECT :alert, :scope, :definition, CAST(:every AS interval), 'ok', now, now, now, now
FROM clock
ON CONFLICT (id) DO UPDATE
SET scope = excluded.scope, definition = excluded.definition, every = excluded.every, look_at = excluded.look_at,
    changed_at = excluded.changed_at;

-- name: alerts
SELECT {alert}
FROM mainspring.alerts
WHERE (CAST(:alert AS text) IS NULL OR id = :alert) AND (CAST(:scope AS text) IS NULL OR scope = :scope)
ORDER BY id;

-- name: remove_alert
DELETE FROM mainspring.alerts
WHERE id = :alert
RETURNING id AS alert_id;

-- What lies further ahead than it is ever put off is from before the clock was set back.
-- name: take_alert
WITH {clock},
due AS MATERIALIZED (
    SELECT id
    FROM mainspring.alerts, clock
    WHERE look_at <= now OR look_at > now + every
    ORDER BY look_at
    LIMIT 1
    FOR UPDATE OF alerts SKIP LOCKED
)
UPDATE mainspring.alerts
SET look_at = (SELECT now FROM clock) + every
WHERE id = ANY (ARRAY(SELECT id FROM due))
RETURNING {alert};

-- name: next_alert
WITH {clock}
SELECT (extract(epoch FROM look_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.alerts, clock
ORDER BY look_at
LIMIT 1;

-- name: lock_alert
WITH {clock}
SELECT now AS now_at, {alert}
FROM mainspring.alerts, clock
WHERE id = :alert
FOR UPDATE OF alerts;

-- name: move_alert
WITH {clock}
UPDATE mainspring.alerts
SET status = :status, since = :since, value = CAST(:value AS double precision), message = :message,
    evaluated_at = (SELECT now FROM clock), evaluated_by = :node
WHERE id = :alert;

-- What follows is what alerts measure. None of it reads more rows than it is told to, whatever the size of the tables: what
-- else is asked of them is asked of those alone.
-- Session by session, by the index of what each holds: there are no more than the fleet can run.
-- name: stuck_jobs
WITH {clock}
SELECT held.id, held.task, (extract(epoch FROM now - held.started_at) * 1000000)::bigint AS ran_us
FROM clock, mainspring.sessions CROSS JOIN LATERAL (
    SELECT id, task, queue, team, started_at
    FROM mainspring.jobs
    WHERE session = sessions.id AND state = 'running'
    OFFSET 0
) AS held
WHERE held.started_at < now - CAST(:longer_than AS interval)
  AND (CAST(:queue AS text) IS NULL OR held.queue = :queue)
  AND (CAST(:task AS text) IS NULL OR held.task = :task)
  AND (CAST(:team AS text) IS NULL OR coalesce(held.team, 'default') = :team)
ORDER BY held.started_at, held.id
LIMIT :most;

-- name: late_schedule
WITH {clock},
first AS MATERIALIZED (
    SELECT id, due_at
    FROM mainspring.schedules
    WHERE due_at <= (SELECT now FROM clock)
    ORDER BY due_at
    LIMIT (SELECT CAST(:look AS bigint))
)
SELECT id AS schedule_id, (extract(epoch FROM now - due_at) * 1000000)::bigint AS late_us
FROM first, clock
WHERE CAST(:team AS text) IS NULL OR {team_of_id} = :team
ORDER BY due_at
LIMIT 1;

-- name: late_job
WITH {clock},
first AS MATERIALIZED (
    SELECT id, run_at, team
    FROM mainspring.jobs
    WHERE {waits_for_its_time} AND run_at <= (SELECT now FROM clock)
    ORDER BY run_at
    LIMIT (SELECT CAST(:look AS bigint))
)
SELECT id, (extract(epoch FROM now - run_at) * 1000000)::bigint AS late_us
FROM first, clock
WHERE CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team
ORDER BY run_at
LIMIT 1;

-- name: ready_jobs
SELECT count(*) FILTER (WHERE CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team) AS ready,
       count(*) AS looked
FROM (
    SELECT team
    FROM mainspring.jobs
    WHERE state = 'ready' AND queue = :queue
    ORDER BY rank
    LIMIT (SELECT CAST(:look AS bigint))
) AS first;

-- Those that come first in each queue, and, where there may be more and priority is strict, the first of each priority that
-- comes later, which is the oldest of it: however many urgent ones there are, they don't hide one that starves.
-- name: oldest_ready
WITH RECURSIVE {clock},
first AS MATERIALIZED (
    SELECT asked.queue, ones.run_at, ones.looked, ones.rank
    FROM json_array_elements_text(CAST(:queues AS json)) AS asked (queue), LATERAL (
        SELECT min(run_at) FILTER (WHERE CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team) AS run_at,
               count(*) AS looked, max(rank) AS rank
        FROM (
            SELECT run_at, team, rank
            FROM mainspring.jobs
            WHERE state = 'ready' AND jobs.queue = asked.queue
            ORDER BY rank
            LIMIT (SELECT CAST(:look AS bigint))
        ) AS ready
    ) AS ones
),
levels (queue, rank, run_at) AS (
    SELECT queue, rank, CAST(NULL AS timestamptz)
    FROM first
    WHERE CAST(:team AS text) IS NULL AND looked >= CAST(:look AS bigint)
    UNION ALL
    SELECT levels.queue, job.rank, job.run_at
    FROM levels, LATERAL (
        SELECT rank, run_at
        FROM mainspring.jobs
        WHERE state = 'ready' AND jobs.queue = levels.queue AND jobs.rank >= {next_level}
        ORDER BY rank
        LIMIT 1
    ) AS job
)
SELECT queue, CAST(extract(epoch FROM (SELECT now FROM clock) - min(run_at)) * 1000000 AS bigint) AS waited_us,
       max(looked) AS looked
FROM (
    SELECT queue, run_at, looked FROM first
    UNION ALL
    SELECT queue, run_at, 0 FROM levels
) AS seen
GROUP BY queue;

-- A job is filed no sooner than it has ended, so days before that are not looked at.
-- name: lately_ended
WITH {clock}
SELECT count(*) FILTER (WHERE wanted AND outcome = 'failed') AS failures, count(*) FILTER (WHERE wanted) AS ended,
       count(*) AS looked
FROM (
    SELECT state AS outcome,
           (CAST(:queue AS text) IS NULL OR queue = :queue) AND (CAST(:task AS text) IS NULL OR task = :task)
           AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team) AS wanted
    FROM mainspring.jobs_done
    WHERE finished_at > (SELECT now - CAST(:over AS interval) FROM clock)
      AND filed_at > (SELECT now - CAST(:over AS interval) FROM clock) AND state IN ('succeeded', 'failed')
    LIMIT (SELECT CAST(:look AS bigint))
) AS lately;

-- name: lately_dead
WITH {clock}
SELECT count(*) FILTER (WHERE CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team) AS letters,
       count(*) AS looked
FROM (
    SELECT team
    FROM mainspring.jobs_done
    WHERE state = 'failed' AND finished_at > (SELECT now - CAST(:over AS interval) FROM clock)
      AND filed_at > (SELECT now - CAST(:over AS interval) FROM clock)
    LIMIT (SELECT CAST(:look AS bigint))
) AS lately;

-- From one name to the next, by the index.
-- name: ready_queues
WITH RECURSIVE names AS (
    (SELECT queue FROM mainspring.jobs WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT queue FROM mainspring.jobs
        WHERE state = 'ready' AND queue > names.queue
        ORDER BY queue
        LIMIT 1
    )
    FROM names
    WHERE names.queue IS NOT NULL
)
SELECT queue
FROM names
WHERE queue IS NOT NULL AND (
    CAST(:team AS text) IS NULL OR EXISTS (
        SELECT FROM (
            SELECT team
            FROM mainspring.jobs AS job
            WHERE state = 'ready' AND job.queue = names.queue
            ORDER BY rank
            LIMIT (SELECT CAST(:look AS bigint))
        ) AS first
        WHERE coalesce(team, 'default') = :team
    )
);

-- Whether or not somebody has noticed already.
-- name: overdue_schedules
WITH {clock},
found AS (
    SELECT id FROM mainspring.schedules WHERE overdue AND NOT paused
    UNION ALL
    SELECT id
    FROM mainspring.schedules
    WHERE expected_by IS NOT NULL AND NOT overdue AND expected_by <= (SELECT now FROM clock) AND NOT paused
)
SELECT id AS schedule_id
FROM found
WHERE CAST(:team AS text) IS NULL OR {team_of_id} = :team
LIMIT :most;

-- name: missed_ticks
WITH {clock},
lately AS MATERIALIZED (
    SELECT schedule AS id
    FROM mainspring.ticks
    WHERE verdict = 'missed' AND decided_at > (SELECT now - CAST(:over AS interval) FROM clock)
    ORDER BY decided_at DESC
    LIMIT (SELECT CAST(:look AS bigint))
)
SELECT DISTINCT id AS schedule_id
FROM lately
WHERE CAST(:team AS text) IS NULL OR {team_of_id} = :team
LIMIT :most;
