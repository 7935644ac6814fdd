-- name: lock_schedules
SELECT :now AS now_at, {schedule}
FROM mainspring_schedules
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;

-- name: now
SELECT :now AS now_at;

-- A success is expected from the next tick on, or, where that depends on when a job ends, from now on.
-- Differs from PostgreSQL: there is one writer at a time, so none can have come in between.
-- name: put_schedules
INSERT INTO mainspring_schedules (
    id, definition, origin, success_in, tick_at, due_at, runs, buffered_at, awaits, depends, team, expected_by,
    created_at, changed_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
       value ->> 8, value ->> 9, value ->> 10,
       coalesce(value ->> 4, CASE WHEN value ->> 8 THEN :now END) + (value ->> 3), :now, :now
FROM json_each(:schedules)
WHERE TRUE
ON CONFLICT (id) DO UPDATE
SET definition = excluded.definition, origin = excluded.origin, success_in = excluded.success_in,
    tick_at = excluded.tick_at, due_at = CASE WHEN NOT paused THEN excluded.due_at END,
    runs = excluded.runs, buffered_at = excluded.buffered_at, awaits = excluded.awaits,
    depends = excluded.depends, expected_by = excluded.expected_by, overdue = 0, changed_at = excluded.changed_at
WHERE :replace;

SELECT value ->> 0 AS schedule_id
FROM json_each(:schedules);

-- name: move_schedules
UPDATE mainspring_schedules
SET paused = position.value ->> 0, tick_at = position.value ->> 1, due_at = position.value ->> 2,
    runs = position.value ->> 3, buffered_at = position.value ->> 4, awaits = position.value ->> 5,
    expected_by = coalesce(
        CASE WHEN NOT position.value ->> 6 THEN expected_by END,
        coalesce(position.value ->> 1, CASE WHEN position.value ->> 5 THEN :now END) + success_in),
    overdue = overdue AND NOT position.value ->> 6
FROM json_each(:positions) AS position
WHERE mainspring_schedules.id = position.key;

-- name: remove_schedules
DELETE FROM mainspring_schedules
WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id AS schedule_id;

-- name: get_schedules
SELECT {schedule}
FROM mainspring_schedules
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: page_schedules
SELECT {schedule}
FROM mainspring_schedules
WHERE id > :after AND (:origin IS NULL OR origin = :origin) AND (NOT :nobodys OR team IS NULL)
ORDER BY id
LIMIT :limit;

-- name: page_schedules_of
SELECT {schedule}
FROM mainspring_schedules
WHERE team = :team AND id > :after AND (:origin IS NULL OR origin = :origin)
ORDER BY id
LIMIT :limit;

-- name: coming_schedules
SELECT {schedule}
FROM mainspring_schedules
WHERE due_at IS NOT NULL AND (NOT :nobodys OR team IS NULL)
ORDER BY due_at
LIMIT :limit;

-- A team's own are found by its name and then sorted: in the order of time, few would stand among everybody's.
-- name: coming_schedules_of
SELECT {schedule}
FROM mainspring_schedules
WHERE team = :team AND due_at IS NOT NULL
ORDER BY +due_at
LIMIT :limit;

-- A tick that was recorded already stays as it is, unless what became of it is one of those that may be replaced.
-- Returns the jobs that are to be made: those of the ticks that are recorded now.
-- name: keep_ticks
INSERT INTO mainspring_ticks (schedule, at, until, count, verdict, reason, job_id, node, decided_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, :node, :now
FROM json_each(:ticks)
WHERE TRUE
ON CONFLICT (schedule, at) DO UPDATE
SET until = excluded.until, count = excluded.count, verdict = excluded.verdict, reason = excluded.reason,
    job_id = excluded.job_id, node = excluded.node, decided_at = excluded.decided_at
WHERE mainspring_ticks.verdict IN (SELECT value FROM json_each(:replaceable));

SELECT tick.job_id
FROM json_each(:ticks) AS given CROSS JOIN mainspring_ticks AS tick
    ON tick.schedule = given.value ->> 0 AND tick.at = given.value ->> 1 AND tick.job_id = given.value ->> 6;

-- name: ticks
SELECT schedule, at, until, count, verdict, reason, job_id, node, decided_at
FROM mainspring_ticks
WHERE schedule = :schedule AND (:before IS NULL OR at < :before)
ORDER BY at DESC
LIMIT :limit;

-- Of those that begin there: what stands for one of them can't stand for the others any more.
-- name: take_spans
DELETE FROM mainspring_ticks
WHERE schedule = :schedule AND until IS NOT NULL
  AND at IN (SELECT value FROM json_each(:ats))
RETURNING at, until, count, verdict, reason;

-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: note_pause
UPDATE mainspring_schedules
SET paused_by = :by, reason = :reason, paused_at = CASE WHEN :by IS NOT NULL THEN coalesce(paused_at, :now) END
WHERE id IN (SELECT value FROM json_each(:ids));
