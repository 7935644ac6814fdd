-- Pieces that several queries share; {live} in a query stands for the piece of that name.
-- What a job holds is text like any other: as JSON it would become part of the JSON that a whole row is read by.
-- name: live
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
wish, reason, error, NULL AS finished_at, NULL AS outcome, NULL AS result, progress, schedule, tick,
expires_at, fair, weight, waits_for,
(SELECT json_group_array(key) || '' FROM mainspring_slots WHERE job_id = id) AS holds,
workflow, links, plan, pending, awaited, signal, team, notify

-- name: done
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
NULL AS wish, reason, error, finished_at, outcome, result, progress, schedule, tick, expires_at,
fair, weight, NULL AS waits_for, NULL AS holds,
workflow, links, plan, NULL AS pending, FALSE AS awaited, NULL AS signal, team, notify

-- What a page of jobs may ask of either table.
-- name: wanted
(:state IS NULL OR state = :state) AND (:queue IS NULL OR queue = :queue)
  AND (:task IS NULL OR task = :task) AND (:key IS NULL OR key = :key)
  AND (:error IS NULL OR instr(lower({said}), lower(:error)) > 0)

-- What an error says: its document up to the traceback, which is long, made one string, and read as such. The document is
-- ours, so its type and its message come first, and no quote within them can be taken for one of its own.
-- name: said
('"' || replace(substr(error, 10, max(0, instr(error, '","traceback":') - 10)), '","message":"', ': ') || '"') ->> '$'

-- name: within
id >= :first AND id < :before

-- name: whosoever
(NOT :nobodys OR team IS NULL)

-- The condition of the index jobs_aside, to the letter.
-- name: is_aside
state IN ('blocked', 'scheduled', 'retrying', 'paused')

-- Each kind by its own index: there may be few of them among many others.
-- name: in_state
SELECT * FROM (
    SELECT id FROM mainspring_jobs INDEXED BY mainspring_jobs_ready WHERE :state = 'ready' AND state = 'ready' LIMIT :most
) AS ready
UNION ALL
SELECT id FROM mainspring_jobs INDEXED BY mainspring_jobs_held WHERE :state = 'running' AND state = 'running'
UNION ALL
SELECT id FROM mainspring_jobs INDEXED BY mainspring_jobs_aside
WHERE {is_aside} AND state = :state

-- name: ended_then
(:finished_since IS NULL OR finished_at >= :finished_since)
  AND (:finished_until IS NULL OR finished_at < :finished_until)

-- Told which index to use: where the newest are asked for, it would rather walk all history from its end.
-- name: dead
mainspring_jobs_done INDEXED BY mainspring_jobs_done_dead
WHERE state = 'failed' AND (:queue IS NULL OR queue = :queue) AND (:task IS NULL OR task = :task)
  AND (:team IS NULL OR coalesce(team, 'default') = :team)
  AND (:finished_until IS NULL OR finished_at < :finished_until)

-- name: next_ready
WHERE state = 'ready' AND queue = :queue AND (run_at <= :now + :ahead OR run_at > :now + :beyond)
  AND (expires_at IS NULL OR expires_at > :now)
  AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))
  AND task NOT IN (SELECT name FROM mainspring_pauses WHERE kind = 'task')
  AND NOT EXISTS (SELECT 1 FROM mainspring_pauses WHERE kind = 'queue' AND name = :queue)
  AND EXISTS (
      SELECT 1 FROM mainspring_sessions
      WHERE id = :session AND lease_until > :steady AND lease_until <= :steady + lease
  )
ORDER BY rank, rowid
LIMIT :limit

-- name: due_now
WHERE {waits_for_its_time} AND run_at <= :now + :ahead
ORDER BY run_at
LIMIT :limit

-- name: decided
decided AS MATERIALIZED (
    SELECT value ->> 0 AS job_id, value ->> 1 AS fence, value ->> 2 AS source, value ->> 3 AS state,
           value ->> 4 AS attempt, value ->> 5 AS losses, value ->> 6 AS delay_us, value ->> 7 AS reason,
           value ->> 8 AS payload, value ->> 9 AS pending
    FROM json_each(:settlements)
)

-- name: told
told AS MATERIALIZED (
    SELECT key AS job_id, value ->> 0 AS fence, value ->> 1 AS source, value ->> 2 AS state, value ->> 3 AS attempt,
           value ->> 4 AS losses, value ->> 5 AS outcome, value ->> 6 AS error, value ->> 7 AS reason,
           value ->> 8 AS delay_us, value ->> 9 AS waits_for, value ->> 10 AS pending, value ->> 11 AS signal,
           value ->> 12 AS plan, value ->> 13 AS expires_us, value ->> 14 AS details
    FROM json_each(:settlements)
)

-- name: holder
mainspring_jobs.id = :job_id AND mainspring_jobs.fence = :fence AND mainspring_jobs.state = 'running'

-- name: orphaned
AND NOT EXISTS (SELECT 1 FROM mainspring_jobs AS job WHERE job.id = kept.job_id)
AND NOT EXISTS (SELECT 1 FROM mainspring_jobs_done AS done WHERE done.id = kept.job_id)

-- name: next_jobs
WHERE job_id > :after AND job_id < :made_before
ORDER BY job_id
LIMIT :limit

-- The condition of the index jobs_due, to the letter.
-- name: waits_for_its_time
(state IN ('scheduled', 'retrying') OR (state = 'blocked' AND signal IS NOT NULL))

-- Rank is the place in the queue: due time and precedence, which is strict by priority, or, where the queue has ageing
-- on, so much waiting time for each point of priority. The position in the batch is added so that jobs enqueued together,
-- which are due in the same microsecond, keep their order.
-- name: insert_jobs
WITH asked AS MATERIALIZED (
    SELECT value ->> 0 AS id, value ->> 1 AS task, value ->> 2 AS queue, value ->> 3 AS payload,
           value ->> 4 AS priority, value ->> 5 AS key,
           coalesce(value ->> 6, :now + (value ->> 7)) AS due_us,
           :first + json_each.key AS position, value ->> 8 AS schedule, value ->> 9 AS tick,
           value ->> 10 AS expires_us, value ->> 11 AS fair, value ->> 12 AS weight, value ->> 13 AS turn,
           value ->> 14 AS workflow, value ->> 15 AS links, value ->> 16 AS pending,
           coalesce(value ->> 17, FALSE) AS awaited, value ->> 18 AS plan,
           value ->> 19 AS team, value ->> 20 AS notify, value ->> 21 AS trace
    FROM json_each(:jobs)
)
INSERT INTO mainspring_jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key, schedule, tick,
                             expires_at, fair, weight, workflow, links, pending, awaited, plan, team, notify, trace)
SELECT id, task, queue, payload, priority,
       {place},
       CASE WHEN pending > 0 THEN 'blocked'
            WHEN due_us <= :now AND (fair IS NULL OR turn IS NOT NULL) THEN 'ready' ELSE 'scheduled' END,
       due_us,
       :now,
       key,
       schedule,
       tick,
       CASE WHEN pending > 0 THEN NULL ELSE due_us + expires_us END,
       fair,
       weight,
       workflow,
       links,
       pending,
       awaited,
       plan,
       team,
       notify,
       trace
FROM asked
WHERE TRUE

-- With a fair key, its turn takes the place of the due time. One that has none yet is scheduled, due or not: promote gives
-- it one. Where the queue has ageing on, that goes before turns.
-- name: place
coalesce((SELECT due_us - priority * ageing + position FROM mainspring_queues WHERE name = queue),
         {strictly} + coalesce(turn, due_us + position))

-- Strict ones are 2^53 or more, which no due time reaches: so a rank says by itself which kind it is.
-- name: precedence
coalesce((SELECT -priority * ageing FROM mainspring_queues WHERE name = queue), {strictly})

-- name: strictly
((101 - priority) << 53)

-- An id that is not a UUID has another name, by which it is left as it is.
-- name: schedule
id AS schedule_id, definition, origin, paused, tick_at, due_at, runs, buffered_at, awaits, ended_at, expected_by, overdue, created_at,
changed_at, paused_by, reason, paused_at

-- name: idempotency_asked
asked AS MATERIALIZED (
    SELECT value ->> 0 AS key, value ->> 1 AS job_id, value ->> 2 AS ttl
    FROM json_each(:asked)
)

-- A key can't be dead before its time to live has passed since its job was last seen alive.
-- name: idempotency_look
:now + max(ttl, 60000000)

-- name: idempotency_due
key IN (SELECT key FROM mainspring_idempotency WHERE look_at <= :now ORDER BY look_at LIMIT :limit)

-- name: idempotency_in_force
(
    EXISTS (SELECT 1 FROM mainspring_jobs AS job WHERE job.id = mainspring_idempotency.job_id)
    OR EXISTS (
        SELECT 1
        FROM mainspring_jobs_done AS done
        WHERE done.id = mainspring_idempotency.job_id AND done.finished_at + mainspring_idempotency.ttl > :now
    )
)

-- name: standing
SELECT :now AS now_at, key AS limit_key, concurrency, gap, burst, full_at,
       (SELECT count(*) FROM mainspring_slots AS slot WHERE slot.key = mainspring_limits.key) AS held,
       EXISTS (SELECT 1 FROM mainspring_jobs WHERE waits_for = mainspring_limits.key) AS waiting,
       breaker
FROM mainspring_limits
WHERE key IN (SELECT value FROM json_each(:keys))

-- Where turns have got to, for a line: to the last of its task that has started, and on to the first from there that waits,
-- whatever its task, for a worker or for a limit. If nobody waits, all are level with the one who has got furthest. What
-- waits further back could not be claimed when its turn came.
-- name: front
coalesce(
    (
        SELECT min(rank) - ((101 - asked.priority) << 53)
        FROM (
            SELECT * FROM (
                SELECT ahead.rank
                FROM mainspring_jobs AS ahead
                WHERE ahead.state = 'ready' AND ahead.queue = asked.queue
                  AND ahead.rank >= ((101 - asked.priority) << 53) + asked.reached
                  AND ahead.rank < (102 - asked.priority) << 53
                ORDER BY ahead.rank
                LIMIT 1
            ) AS first
            UNION ALL
            SELECT * FROM (
                SELECT ahead.rank
                FROM mainspring_jobs AS ahead
                WHERE ahead.waits_for IS NOT NULL AND ahead.fair IS NOT NULL AND ahead.queue = asked.queue
                  AND ahead.rank >= ((101 - asked.priority) << 53) + asked.reached
                  AND ahead.rank < (102 - asked.priority) << 53
                ORDER BY ahead.rank
                LIMIT 1
            ) AS waiting
        ) AS ones
    ),
    asked.furthest
)

-- name: furthest
coalesce(
    (SELECT max(every.reached) FROM mainspring_turns AS every
     WHERE every.queue = line.queue AND every.priority = line.priority),
    :first
)

-- An id that is not a UUID has another name, by which it is left as it is. The digest is not among them.
-- name: token
id AS token_id, name, grants, created_at, created_by, expires_at, revoked_at, last_used_at

-- name: entry
seq, id, at, actor, team, action, target, details, hash
-- name: alert
id AS alert_id, scope, definition, status, since, value, message, look_at, evaluated_at, evaluated_by, created_at, changed_at

-- Whose a schedule is its id says.
-- name: team_of_id
CASE WHEN id LIKE '@%' THEN substr(id, 2, instr(id, '/') - 2) ELSE 'default' END

-- name: team
name, max_pending, max_schedules, gap, burst, created_at

-- When the bucket is full again, which can't be later than it takes to fill it from empty: what is stored may be from when
-- the rate was lower, or from before the clock was set back.
-- name: filling
max(:now, min(coalesce(full_at, :now), :now + burst * gap))

-- Differs from PostgreSQL: the next few jobs of a day in the order in which they ended, by the index of that.
-- name: page_of_day
page AS MATERIALIZED (
    SELECT id, team, queue, state, workflow, plan, created_at, finished_at
    FROM mainspring_jobs_done
    WHERE finished_at >= :since AND finished_at < :until AND (finished_at > :since OR id > :after)
    ORDER BY finished_at, id
    LIMIT :limit
)

-- Whether a rule for retention is about a job, and none of those that say more precisely what they mean.
-- name: covered
(:team = '' OR coalesce(page.team, 'default') = :team)
AND (:queue = '' OR page.queue = :queue)
AND (:state = '' OR page.state = :state)
AND NOT EXISTS (
    SELECT 1
    FROM json_each(:others) AS other
    WHERE other.value ->> 0 IN ('', coalesce(page.team, 'default')) AND other.value ->> 1 IN ('', page.queue)
      AND other.value ->> 2 IN ('', page.state)
)

-- Members of a workflow stay and go with it.
-- name: on_its_own
(page.workflow IS NULL OR (
    NOT EXISTS (SELECT 1 FROM mainspring_jobs AS root WHERE root.id = page.workflow)
    AND NOT EXISTS (SELECT 1 FROM mainspring_jobs_done AS root WHERE root.id = page.workflow)
    AND NOT EXISTS (SELECT 1 FROM mainspring_pruned AS pruned WHERE pruned.workflow = page.workflow)
))

-- name: given_to_forget
(id, finished_at) IN (SELECT value ->> 0, value ->> 2 FROM json_each(:going))

-- When that span of so many seconds began in which `at` lies.
-- name: span_start
at / (span * 1000000) * (span * 1000000)

-- Where the ranks of the next lower priority begin, from that of a job on.
-- name: next_level
((levels.rank >> 53) + 1) << 53
