-- name: room_for_alert
SELECT count(*) AS alerts, count(*) FILTER (WHERE id = :id) AS known
FROM mainspring_alerts
WHERE scope IS :team;

-- One that is known goes on as it stands, and is looked at again at once: by its new rule it may have resolved.
-- name: put_alert
INSERT INTO mainspring_alerts (id, scope, definition, every, status, since, look_at, created_at, changed_at)
VALUES (:alert, :scope, :definition, :every, 'ok', :now, :now, :now, :now)
ON CONFLICT (id) DO UPDATE
SET scope = excluded.scope, definition = excluded.definition, every = excluded.every, look_at = excluded.look_at,
    changed_at = excluded.changed_at;

-- name: alerts
SELECT {alert}
FROM mainspring_alerts
WHERE (:alert IS NULL OR id = :alert) AND (:scope IS NULL OR scope = :scope)
ORDER BY id;

-- name: remove_alert
DELETE FROM mainspring_alerts
WHERE id = :alert
RETURNING id AS alert_id;

-- What lies further ahead than it is ever put off is from before the clock was set back.
-- name: take_alert
UPDATE mainspring_alerts
SET look_at = :now + every
WHERE id IN (
    SELECT id
    FROM mainspring_alerts
    WHERE look_at <= :now OR look_at > :now + every
    ORDER BY look_at
    LIMIT 1
)
RETURNING {alert};

-- name: next_alert
SELECT look_at - :now AS wait_us
FROM mainspring_alerts
ORDER BY look_at
LIMIT 1;

-- name: lock_alert
SELECT :now AS now_at, {alert}
FROM mainspring_alerts
WHERE id = :alert;

-- name: move_alert
UPDATE mainspring_alerts
SET status = :status, since = :since, value = :value, message = :message, evaluated_at = :now, evaluated_by = :node
WHERE id = :alert;

-- What follows is what alerts measure. None of it reads more rows than it is told to, whatever the size of the tables: what
-- else is asked of them is asked of those alone.
-- name: stuck_jobs
SELECT job.id, job.task, :now - job.started_at AS ran_us
FROM mainspring_sessions AS holder CROSS JOIN mainspring_jobs AS job
WHERE job.session = holder.id AND job.state = 'running'
  AND job.started_at < :now - :longer_than
  AND (:queue IS NULL OR job.queue = :queue)
  AND (:task IS NULL OR job.task = :task)
  AND (:team IS NULL OR coalesce(job.team, 'default') = :team)
ORDER BY job.started_at, job.id
LIMIT :most;

-- name: late_schedule
SELECT id AS schedule_id, :now - due_at AS late_us
FROM (
    SELECT id, due_at
    FROM mainspring_schedules
    WHERE due_at <= :now
    ORDER BY due_at
    LIMIT :look
) AS first
WHERE :team IS NULL OR {team_of_id} = :team
ORDER BY due_at
LIMIT 1;

-- name: late_job
SELECT id, :now - run_at AS late_us
FROM (
    SELECT id, run_at, team
    FROM mainspring_jobs
    WHERE {waits_for_its_time} AND run_at <= :now
    ORDER BY run_at
    LIMIT :look
) AS first
WHERE :team IS NULL OR coalesce(team, 'default') = :team
ORDER BY run_at
LIMIT 1;

-- name: ready_jobs
SELECT count(*) FILTER (WHERE :team IS NULL OR coalesce(team, 'default') = :team) AS ready, count(*) AS looked
FROM (
    SELECT team
    FROM mainspring_jobs
    WHERE state = 'ready' AND queue = :queue
    ORDER BY rank
    LIMIT :look
) AS first;

-- Those that come first in each queue, and, where there may be more and priority is strict, the first of each priority that
-- comes later, which is the oldest of it: however many urgent ones there are, they don't hide one that starves.
-- name: oldest_ready
WITH RECURSIVE first AS MATERIALIZED (
    SELECT asked.value AS queue, (
        SELECT json_array(min(run_at) FILTER (WHERE :team IS NULL OR coalesce(team, 'default') = :team), count(*), max(rank))
        FROM (
            SELECT run_at, team, rank
            FROM mainspring_jobs
            WHERE state = 'ready' AND queue = asked.value
            ORDER BY rank
            LIMIT :look
        ) AS ones
    ) AS seen
    FROM json_each(:queues) AS asked
),
levels (queue, rank, run_at) AS (
    SELECT queue, seen ->> 2, NULL
    FROM first
    WHERE :team IS NULL AND seen ->> 1 >= :look
    UNION ALL
    SELECT levels.queue, job.rank, job.run_at
    FROM levels CROSS JOIN mainspring_jobs AS job ON job.rowid = (
        SELECT rowid
        FROM mainspring_jobs
        WHERE state = 'ready' AND queue = levels.queue AND rank >= {next_level}
        ORDER BY rank
        LIMIT 1
    )
)
SELECT queue, :now - min(run_at) AS waited_us, max(looked) AS looked
FROM (
    SELECT queue, seen ->> 0 AS run_at, seen ->> 1 AS looked FROM first
    UNION ALL
    SELECT queue, run_at, 0 FROM levels
) AS seen
GROUP BY queue;

-- name: lately_ended
SELECT count(*) FILTER (WHERE wanted AND outcome = 'failed') AS failures, count(*) FILTER (WHERE wanted) AS ended,
       count(*) AS looked
FROM (
    SELECT state AS outcome,
           (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
           AND (:team IS NULL OR coalesce(team, 'default') = :team) AS wanted
    FROM mainspring_jobs_done INDEXED BY mainspring_jobs_done_finished
    WHERE finished_at > :now - :over AND state IN ('succeeded', 'failed')
    LIMIT :look
) AS lately;

-- name: lately_dead
SELECT count(*) FILTER (WHERE :team IS NULL OR coalesce(team, 'default') = :team) AS letters, count(*) AS looked
FROM (
    SELECT team
    FROM mainspring_jobs_done INDEXED BY mainspring_jobs_done_failed
    WHERE state = 'failed' AND finished_at > :now - :over
    LIMIT :look
) AS lately;

-- From one name to the next, by the index.
-- name: ready_queues
WITH RECURSIVE names (queue) AS (
    SELECT * FROM (SELECT queue FROM mainspring_jobs WHERE state = 'ready' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.queue FROM mainspring_jobs AS job
        WHERE job.state = 'ready' AND job.queue > names.queue
        ORDER BY job.queue
        LIMIT 1
    )
    FROM names
    WHERE names.queue IS NOT NULL
)
SELECT queue
FROM names
WHERE queue IS NOT NULL AND (
    :team IS NULL OR EXISTS (
        SELECT 1 FROM (
            SELECT team
            FROM mainspring_jobs AS job
            WHERE job.state = 'ready' AND job.queue = names.queue
            ORDER BY rank
            LIMIT :look
        ) AS first
        WHERE coalesce(team, 'default') = :team
    )
);

-- Whether or not somebody has noticed already.
-- name: overdue_schedules
SELECT id AS schedule_id
FROM (
    SELECT id FROM mainspring_schedules WHERE overdue AND NOT paused
    UNION ALL
    SELECT id
    FROM mainspring_schedules
    WHERE expected_by IS NOT NULL AND NOT overdue AND expected_by <= :now AND NOT paused
) AS found
WHERE :team IS NULL OR {team_of_id} = :team
LIMIT :most;

-- name: missed_ticks
SELECT DISTINCT id AS schedule_id
FROM (
    SELECT schedule AS id
    FROM mainspring_ticks
    WHERE verdict = 'missed' AND decided_at > :now - :over
    ORDER BY decided_at DESC
    LIMIT :look
) AS lately
WHERE :team IS NULL OR {team_of_id} = :team
LIMIT :most;
