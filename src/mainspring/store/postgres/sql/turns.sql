-- Moves lines on by what their jobs cost, and says what turn comes after theirs. In the order of lines, so that two who
-- enqueue for the same ones do not wait for each other in a circle. Whoever has jobs locked as well locks those first.
-- name: take_turns
WITH asked AS MATERIALIZED (
    SELECT line.queue, line.priority, line.task, line.fair, line.cost, coalesce(turns.reached, :first) AS reached,
           {furthest} AS furthest
    FROM (
        SELECT fields ->> 0 AS queue, CAST(fields ->> 1 AS smallint) AS priority, fields ->> 2 AS task,
               fields ->> 3 AS fair, CAST(fields ->> 4 AS bigint) AS cost
        FROM jsonb_array_elements(CAST(:lines AS jsonb)) AS given (fields)
    ) AS line
    LEFT JOIN mainspring.turns USING (queue, priority, task)
)
INSERT INTO mainspring.lines AS line (queue, priority, task, fair, next, cost)
SELECT queue, priority, task, fair, {front} + cost, cost
FROM asked
ORDER BY queue, priority, task, fair
ON CONFLICT (queue, priority, task, fair) DO UPDATE
SET next = greatest(excluded.next, line.next + excluded.cost), cost = excluded.cost
RETURNING queue, priority, task, fair, next;

-- Locks lines, and names those that somebody else has locked.
-- name: lock_lines
WITH asked AS MATERIALIZED (
    SELECT fields ->> 0 AS queue, CAST(fields ->> 1 AS smallint) AS priority, fields ->> 2 AS task, fields ->> 3 AS fair
    FROM jsonb_array_elements(CAST(:lines AS jsonb)) AS given (fields)
),
locked AS MATERIALIZED (
    SELECT queue, priority, task, fair
    FROM mainspring.lines
    WHERE (queue, priority, task, fair) IN (SELECT queue, priority, task, fair FROM asked)
    ORDER BY queue, priority, task, fair
    FOR UPDATE SKIP LOCKED
)
SELECT queue, priority, task, fair
FROM mainspring.lines
WHERE (queue, priority, task, fair) IN (SELECT queue, priority, task, fair FROM asked)
EXCEPT
SELECT queue, priority, task, fair
FROM locked;

-- What a job paid that leaves its line before its turn.
-- name: give_turns_back
UPDATE mainspring.lines AS line
SET next = line.next - given.cost
FROM (
    SELECT line.queue, line.priority, line.task, line.fair, asked.cost
    FROM (
        SELECT fields ->> 0 AS queue, CAST(fields ->> 1 AS smallint) AS priority, fields ->> 2 AS task,
               fields ->> 3 AS fair, CAST(fields ->> 4 AS bigint) AS cost
        FROM jsonb_array_elements(CAST(:lines AS jsonb)) AS given (fields)
    ) AS asked
    JOIN mainspring.lines AS line USING (queue, priority, task, fair)
    ORDER BY line.queue, line.priority, line.task, line.fair
    FOR UPDATE OF line
) AS given
WHERE (line.queue, line.priority, line.task, line.fair) = (given.queue, given.priority, given.task, given.fair);

-- name: lock_turnless
WITH {clock}
SELECT id, queue, priority, task, fair, weight
FROM mainspring.jobs, clock
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
  AND {waits_for_its_time} AND run_at <= now + CAST(:ahead AS interval)
ORDER BY run_at, id
FOR UPDATE OF jobs SKIP LOCKED;

-- name: line_up
WITH given AS MATERIALIZED (
    SELECT id, queue, priority, CAST(extract(epoch FROM run_at) * 1000000 AS bigint) AS due_us, 0 AS position,
           CAST((SELECT CAST(:turns AS jsonb)) ->> CAST(id AS text) AS bigint) AS turn
    FROM mainspring.jobs
    WHERE id = ANY (ARRAY(SELECT CAST(jsonb_object_keys(CAST(:turns AS jsonb)) AS uuid)))
)
UPDATE mainspring.jobs AS job
SET state = 'ready', rank = placed.rank, signal = NULL
FROM (SELECT id, {place} AS rank FROM given) AS placed
WHERE job.id = placed.id;

-- Its commit does not wait for the disk: what a crash of the server takes of it, the next claim says again.
-- name: reach
WITH quick AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
INSERT INTO mainspring.turns AS line (queue, priority, task, reached)
SELECT fields ->> 0, CAST(fields ->> 1 AS smallint), fields ->> 2, CAST(fields ->> 3 AS bigint)
FROM quick, jsonb_array_elements(CAST(:reached AS jsonb)) AS given (fields)
ORDER BY 1, 2, 3
ON CONFLICT (queue, priority, task) DO UPDATE
SET reached = excluded.reached
WHERE line.reached < excluded.reached;

-- A line that has fallen behind says no more than none at all; and while nobody stands in any, nor does one that has had
-- its turn. Where a queue ages its jobs, lines mean nothing.
-- name: prune_lines
WITH idle AS MATERIALIZED (
    SELECT line.queue, line.priority, line.task, line.fair
    FROM mainspring.lines AS line
    LEFT JOIN mainspring.turns USING (queue, priority, task)
    WHERE line.next <= coalesce(turns.reached, {furthest})
       OR EXISTS (SELECT FROM mainspring.queues WHERE name = line.queue AND ageing IS NOT NULL)
       OR (
        line.next <= coalesce(turns.reached, {furthest}) + :turn
        AND NOT EXISTS (
            SELECT FROM mainspring.jobs
            WHERE state = 'ready' AND queue = line.queue
              AND rank >= (CAST(101 - line.priority AS bigint) << 53) + coalesce(turns.reached, :first)
              AND rank < CAST(102 - line.priority AS bigint) << 53
        )
    )
    LIMIT :limit
    FOR UPDATE OF line SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.lines
    WHERE (queue, priority, task, fair) IN (SELECT queue, priority, task, fair FROM idle)
    RETURNING fair
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
