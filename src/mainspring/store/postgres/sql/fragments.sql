-- Pieces that several queries share; {live} in a query stands for the piece of that name.
-- name: live
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
wish, reason, error, CAST(NULL AS timestamptz) AS finished_at, CAST(NULL AS text) AS outcome,
CAST(NULL AS text) AS result, progress, schedule, tick, expires_at, fair, weight, waits_for,
(SELECT CAST(json_agg(key) AS text) FROM mainspring.slots WHERE job_id = id) AS holds,
workflow, links, plan, pending, awaited, signal, team, notify

-- name: done
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
CAST(NULL AS text) AS wish, reason, error, finished_at, outcome, result, progress, schedule, tick, expires_at,
fair, weight, CAST(NULL AS text) AS waits_for, CAST(NULL AS text) AS holds,
workflow, links, plan, CAST(NULL AS integer) AS pending, FALSE AS awaited, CAST(NULL AS text) AS signal, team, notify

-- What a page of jobs may ask of either table. Differs from SQLite in that it is told to know of no case but that of ASCII
-- letters, whatever the database's collation.
-- name: wanted
(CAST(:state AS text) IS NULL OR state = :state) AND (CAST(:queue AS text) IS NULL OR queue = :queue)
  AND (CAST(:task AS text) IS NULL OR task = :task) AND (CAST(:key AS text) IS NULL OR key = :key)
  AND (CAST(:error AS text) IS NULL OR strpos(lower(({said}) COLLATE "C"), lower(CAST(:error AS text) COLLATE "C")) > 0)

-- What an error says: its document up to the traceback, which is long, made one string, and read as such. The document is
-- ours, so its type and its message come first, and no quote within them can be taken for one of its own.
-- name: said
CAST(
    '"' || replace(substr(error, 10, greatest(0, strpos(error, '","traceback":') - 10)), '","message":"', ': ') || '"' AS json
) #>> '{}'

-- name: within
id >= CAST(:first AS uuid) AND id < CAST(:before AS uuid)

-- name: whosoever
(NOT CAST(:nobodys AS boolean) OR team IS NULL)

-- The condition of the index jobs_aside, to the letter.
-- name: is_aside
state IN ('blocked', 'scheduled', 'retrying', 'paused') IS NOT FALSE

-- Each kind by its own index: there may be few of them among many others. Differs from SQLite, which is told the index, in
-- that what is ready is asked for in order, so that the index is used although most of the table may be ready.
-- name: in_state
SELECT * FROM (
    SELECT id FROM mainspring.jobs WHERE CAST(:state AS text) = 'ready' AND state = 'ready' ORDER BY queue, rank LIMIT :most
) AS ready
UNION ALL
SELECT id FROM mainspring.jobs WHERE CAST(:state AS text) = 'running' AND state = 'running'
UNION ALL
SELECT id FROM mainspring.jobs
WHERE {is_aside} AND state = CAST(:state AS text)

-- name: ended_then
(CAST(:finished_since AS timestamptz) IS NULL OR finished_at >= :finished_since)
  AND (CAST(:finished_until AS timestamptz) IS NULL OR finished_at < :finished_until)

-- name: dead
mainspring.jobs_done
WHERE state = 'failed' AND (CAST(:queue AS text) IS NULL OR queue = :queue)
  AND (CAST(:task AS text) IS NULL OR task = :task)
  AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team)
  AND (CAST(:finished_until AS timestamptz) IS NULL OR finished_at < :finished_until)

-- What claim can't know beforehand, its place first. It started now as far as whoever claims it is concerned: he waits
-- for the rest of the time if it was promoted ahead.
-- name: claimed
rank, id, task, payload, priority, run_at, created_at, key, attempt, losses, fence, now AS started_at, reason, error,
progress, schedule, tick, expires_at, fair, workflow, links, plan, awaited, team, notify, trace

-- A statement reads the clock once, so that all its rows agree. Tests pass a time of their own as :now.
-- name: clock
clock AS MATERIALIZED (
    SELECT now, (extract(epoch FROM now) * 1000000)::bigint AS now_us
    FROM (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now) AS reading
)

-- name: given
given AS MATERIALIZED (
    SELECT CAST(:settlements AS jsonb) AS settlements
)

-- What settlement a job finds by its id. A subquery, because with `given` in FROM every row would carry a copy of all of
-- them along.
-- name: told
(SELECT settlements FROM given) -> CAST(job.id AS text)

-- The attempt that writes, and its job for as long as it holds that. As in settle, 'running' is kept from the planner.
-- name: holder
attempt AS MATERIALIZED (
    SELECT CAST(:job_id AS uuid) AS job_id, CAST(:fence AS bigint) AS fence, 'running' AS state
),
held AS MATERIALIZED (
    SELECT job.id
    FROM mainspring.jobs AS job
    WHERE job.id = ANY (ARRAY(SELECT job_id FROM attempt))
      AND job.fence = (SELECT fence FROM attempt) AND job.state = (SELECT state FROM attempt)
    FOR UPDATE OF job
)

-- OFFSET keeps that a question for each row, where a join would read all jobs that there are.
-- name: orphaned
AND NOT EXISTS (SELECT FROM mainspring.jobs AS job WHERE job.id = kept.job_id OFFSET 0)
AND NOT EXISTS (SELECT FROM mainspring.jobs_done AS done WHERE done.id = kept.job_id OFFSET 0)

-- The condition of the index jobs_due, to the letter.
-- name: waits_for_its_time
(state IN ('scheduled', 'retrying') OR (state = 'blocked' AND signal IS NOT NULL))

-- Rank is the place in the queue: due time and precedence, which is strict by priority, or, where the queue has ageing
-- on, so much waiting time for each point of priority. The position in the batch is added so that jobs enqueued together,
-- which are due in the same microsecond, keep their order.
-- name: insert_jobs
WITH {clock},
asked AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS id, fields ->> 1 AS task, fields ->> 2 AS queue, fields ->> 3 AS payload,
           CAST(fields ->> 4 AS smallint) AS priority, fields ->> 5 AS key,
           coalesce(CAST(fields ->> 6 AS bigint), now_us + CAST(fields ->> 7 AS bigint)) AS due_us,
           :first + position AS position, fields ->> 8 AS schedule, CAST(fields ->> 9 AS bigint) AS tick_us,
           CAST(fields ->> 10 AS bigint) AS expires_us, fields ->> 11 AS fair,
           CAST(fields ->> 12 AS smallint) AS weight, CAST(fields ->> 13 AS bigint) AS turn,
           CAST(fields ->> 14 AS uuid) AS workflow, fields ->> 15 AS links, CAST(fields ->> 16 AS integer) AS pending,
           coalesce(CAST(fields ->> 17 AS boolean), false) AS awaited, fields ->> 18 AS plan,
           fields ->> 19 AS team, fields ->> 20 AS notify, fields ->> 21 AS trace
    FROM clock, jsonb_array_elements(CAST(:jobs AS jsonb)) WITH ORDINALITY AS job (fields, position)
)
INSERT INTO mainspring.jobs (id, task, queue, payload, priority, rank, state, run_at, created_at, key, schedule, tick,
                       expires_at, fair, weight, workflow, links, pending, awaited, plan, team, notify, trace)
SELECT id, task, queue, payload, priority,
       {place},
       CASE WHEN pending > 0 THEN 'blocked'
            WHEN due_us <= now_us AND (fair IS NULL OR turn IS NOT NULL) THEN 'ready' ELSE 'scheduled' END,
       timestamptz 'epoch' + due_us * interval '1 microsecond',
       now,
       key,
       schedule,
       timestamptz 'epoch' + tick_us * interval '1 microsecond',
       CASE WHEN pending > 0 THEN NULL ELSE timestamptz 'epoch' + (due_us + expires_us) * interval '1 microsecond' END,
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
FROM asked, clock

-- With a fair key, its turn takes the place of the due time. One that has none yet is scheduled, due or not: promote gives
-- it one. Where the queue has ageing on, that goes before turns.
-- name: place
coalesce((SELECT due_us - priority * {ageing_us} + position FROM mainspring.queues WHERE name = queue),
         {strictly} + coalesce(turn, due_us + position))

-- Strict ones are 2^53 or more, which no due time reaches: so a rank says by itself which kind it is.
-- name: precedence
coalesce((SELECT -priority * {ageing_us} FROM mainspring.queues WHERE name = queue), {strictly})

-- name: strictly
(CAST(101 - priority AS bigint) << 53)

-- name: ageing_us
CAST(extract(epoch FROM ageing) * 1000000 AS bigint)

-- An id that is not a UUID has another name, by which it is left as it is.
-- name: schedule
id AS schedule_id, definition, origin, paused, tick_at, due_at, runs, buffered_at, awaits, ended_at, expected_by, overdue, created_at,
changed_at, paused_by, reason, paused_at

-- name: idempotency_asked
asked AS MATERIALIZED (
    SELECT fields ->> 0 AS key, CAST(fields ->> 1 AS uuid) AS job_id,
           CAST(fields ->> 2 AS bigint) * interval '1 microsecond' AS ttl
    FROM jsonb_array_elements(CAST(:asked AS jsonb)) AS one (fields)
)

-- A key can't be dead before its time to live has passed since its job was last seen alive.
-- name: idempotency_look
now + greatest(ttl, interval '1 minute')

-- name: idempotency_in_force
(
    EXISTS (SELECT FROM mainspring.jobs AS job WHERE job.id = held.job_id)
    OR EXISTS (
        SELECT FROM mainspring.jobs_done AS done WHERE done.id = held.job_id AND done.finished_at + held.ttl > now
    )
)

-- What was freed in the same statement is still there as far as that can see.
-- name: standing
SELECT now AS now_at, key AS limit_key, concurrency, gap, burst, full_at,
       (SELECT count(*) FROM mainspring.slots WHERE slots.key = limits.key)
       - (SELECT count(*) FROM freed WHERE freed.key = limits.key) AS held,
       EXISTS (SELECT FROM mainspring.jobs WHERE waits_for = limits.key) AS waiting,
       breaker
FROM mainspring.limits, clock
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS json))))

-- Where turns have got to, for a line: to the last of its task that has started, and on to the first from there that waits,
-- whatever its task, for a worker or for a limit. If nobody waits, all are level with the one who has got furthest. What
-- waits further back could not be claimed when its turn came.
-- name: front
coalesce(
    (
        SELECT min(rank) - (CAST(101 - asked.priority AS bigint) << 53)
        FROM (
            SELECT * FROM (
                SELECT ahead.rank
                FROM mainspring.jobs AS ahead
                WHERE ahead.state = 'ready' AND ahead.queue = asked.queue
                  AND ahead.rank >= (CAST(101 - asked.priority AS bigint) << 53) + asked.reached
                  AND ahead.rank < CAST(102 - asked.priority AS bigint) << 53
                ORDER BY ahead.rank
                LIMIT 1
            ) AS first
            UNION ALL
            SELECT * FROM (
                SELECT ahead.rank
                FROM mainspring.jobs AS ahead
                WHERE ahead.waits_for IS NOT NULL AND ahead.fair IS NOT NULL AND ahead.queue = asked.queue
                  AND ahead.rank >= (CAST(101 - asked.priority AS bigint) << 53) + asked.reached
                  AND ahead.rank < CAST(102 - asked.priority AS bigint) << 53
                ORDER BY ahead.rank
                LIMIT 1
            ) AS waiting
        ) AS ones
    ),
    asked.furthest
)

-- name: furthest
coalesce(
    (SELECT max(every.reached) FROM mainspring.turns AS every
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
CASE WHEN id LIKE '@%' THEN split_part(substr(id, 2), '/', 1) ELSE 'default' END

-- name: team
name, max_pending, max_schedules, gap, burst, created_at

-- When the bucket is full again, which can't be later than it takes to fill it from empty: what is stored may be from when
-- the rate was lower, or from before the clock was set back.
-- name: filling
greatest(now, least(coalesce(full_at, now), now + burst * gap))

-- The next few jobs of a day in the order of ids, by the key of its partition; so each is looked at once, however many go.
-- name: page_of_day
page AS MATERIALIZED (
    SELECT id, team, queue, state, workflow, plan, created_at, finished_at, filed_at
    FROM mainspring.jobs_done
    WHERE filed_at >= :since AND filed_at < :until AND id > :after
    ORDER BY id
    LIMIT (SELECT CAST(:limit AS bigint))
)

-- Whether a rule for retention is about a job, and none of those that say more precisely what they mean.
-- name: covered
(CAST(:team AS text) = '' OR coalesce(page.team, 'default') = :team)
AND (CAST(:queue AS text) = '' OR page.queue = :queue)
AND (CAST(:state AS text) = '' OR page.state = :state)
AND NOT EXISTS (
    SELECT
    FROM jsonb_array_elements(CAST(:others AS jsonb)) AS other (fields)
    WHERE fields ->> 0 IN ('', coalesce(page.team, 'default')) AND fields ->> 1 IN ('', page.queue)
      AND fields ->> 2 IN ('', page.state)
)

-- Members of a workflow stay and go with it. OFFSET keeps that a question for each row, as in `orphaned`.
-- name: on_its_own
(page.workflow IS NULL OR (
    NOT EXISTS (SELECT FROM mainspring.jobs AS root WHERE root.id = page.workflow OFFSET 0)
    AND NOT EXISTS (SELECT FROM mainspring.jobs_done AS root WHERE root.id = page.workflow OFFSET 0)
    AND NOT EXISTS (SELECT FROM mainspring.pruned WHERE pruned.workflow = page.workflow OFFSET 0)
))

-- When that span of so many seconds began in which `at` lies.
-- name: span_start
timestamptz 'epoch' + floor(extract(epoch FROM at) / span) * span * interval '1 second'

-- Where the ranks of the next lower priority begin, from that of a job on.
-- name: next_level
((levels.rank >> 53) + 1) << 53
