-- Moves lines on by what their jobs cost, and says what turn comes after theirs.
-- name: take_turns
INSERT INTO mainspring_lines (queue, priority, task, fair, next, cost)
SELECT queue, priority, task, fair, {front} + cost, cost
FROM (
    SELECT line.queue, line.priority, line.task, line.fair, line.cost, coalesce(turns.reached, :first) AS reached,
           {furthest} AS furthest
    FROM (
        SELECT value ->> 0 AS queue, value ->> 1 AS priority, value ->> 2 AS task, value ->> 3 AS fair,
               value ->> 4 AS cost
        FROM json_each(:lines)
    ) AS line
    LEFT JOIN mainspring_turns AS turns USING (queue, priority, task)
) AS asked
WHERE TRUE
ON CONFLICT (queue, priority, task, fair) DO UPDATE
SET next = max(excluded.next, next + excluded.cost), cost = excluded.cost
RETURNING queue, priority, task, fair, next;

-- Differs from PostgreSQL: there is one writer at a time, so nobody else has locked any.
-- name: lock_lines
SELECT queue, priority, task, fair
FROM mainspring_lines
WHERE :lines IS NULL;

-- What a job paid that leaves its line before its turn.
-- name: give_turns_back
UPDATE mainspring_lines
SET next = next - (given.value ->> 4)
FROM json_each(:lines) AS given
WHERE queue = given.value ->> 0 AND priority = given.value ->> 1 AND task = given.value ->> 2
  AND fair = given.value ->> 3;

-- name: lock_turnless
SELECT id, queue, priority, task, fair, weight
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
  AND {waits_for_its_time} AND run_at <= :now + :ahead
ORDER BY run_at, id;

-- name: line_up
UPDATE mainspring_jobs
SET state = 'ready', rank = placed.rank, signal = NULL
FROM (
    SELECT job_id, {place} AS rank
    FROM (
        SELECT job.id AS job_id, job.queue, job.priority, job.run_at AS due_us, 0 AS position, given.value AS turn
        FROM json_each(:turns) AS given CROSS JOIN mainspring_jobs AS job ON job.id = given.key
    )
) AS placed
WHERE mainspring_jobs.id = placed.job_id;

-- name: reach
INSERT INTO mainspring_turns (queue, priority, task, reached)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:reached)
WHERE TRUE
ON CONFLICT (queue, priority, task) DO UPDATE
SET reached = excluded.reached
WHERE reached < excluded.reached;

-- A line that has fallen behind says no more than none at all; and while nobody stands in any, nor does one that has had
-- its turn. Where a queue ages its jobs, lines mean nothing.
-- name: prune_lines
DELETE FROM mainspring_lines
WHERE (queue, priority, task, fair) IN (
    SELECT line.queue, line.priority, line.task, line.fair
    FROM mainspring_lines AS line
    LEFT JOIN mainspring_turns AS turns USING (queue, priority, task)
    WHERE line.next <= coalesce(turns.reached, {furthest})
       OR EXISTS (SELECT 1 FROM mainspring_queues WHERE name = line.queue AND ageing IS NOT NULL)
       OR (
        line.next <= coalesce(turns.reached, {furthest}) + :turn
        AND NOT EXISTS (
            SELECT 1 FROM mainspring_jobs AS ahead
            WHERE ahead.state = 'ready' AND ahead.queue = line.queue
              AND ahead.rank >= ((101 - line.priority) << 53) + coalesce(turns.reached, :first)
              AND ahead.rank < (102 - line.priority) << 53
        )
    )
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;
