-- In the order of ids, so that two that lock several do not wait for each other in a circle.
-- name: lock_schedules
WITH {clock}
SELECT now AS now_at, {schedule}
FROM mainspring.schedules, clock
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
ORDER BY id
FOR UPDATE OF schedules;

-- name: now
WITH {clock}
SELECT now AS now_at
FROM clock;

-- A success is expected from the next tick on, or, where that depends on when a job ends, from now on.
-- Those that are there already are left alone unless they are to be replaced: another node may have put them just now.
-- name: put_schedules
WITH {clock},
given AS MATERIALIZED (
    SELECT fields ->> 0 AS id, fields ->> 1 AS definition, fields ->> 2 AS origin,
           CAST(fields ->> 3 AS bigint) * interval '1 microsecond' AS success_in,
           timestamptz 'epoch' + CAST(fields ->> 4 AS bigint) * interval '1 microsecond' AS tick_at,
           timestamptz 'epoch' + CAST(fields ->> 5 AS bigint) * interval '1 microsecond' AS due_at,
           CAST(fields ->> 6 AS bigint) AS runs,
           timestamptz 'epoch' + CAST(fields ->> 7 AS bigint) * interval '1 microsecond' AS buffered_at,
           CAST(fields ->> 8 AS boolean) AS awaits, CAST(fields ->> 9 AS boolean) AS depends, fields ->> 10 AS team
    FROM jsonb_array_elements(CAST(:schedules AS jsonb)) AS schedule (fields)
)
INSERT INTO mainspring.schedules AS schedule (
    id, definition, origin, success_in, tick_at, due_at, runs, buffered_at, awaits, depends, team, expected_by,
    created_at, changed_at)
SELECT id, definition, origin, success_in, tick_at, due_at, runs, buffered_at, awaits, depends, team,
       coalesce(tick_at, CASE WHEN awaits THEN now END) + success_in, now, now
FROM given, clock
ORDER BY id
ON CONFLICT (id) DO UPDATE
SET definition = excluded.definition, origin = excluded.origin, success_in = excluded.success_in,
    tick_at = excluded.tick_at, due_at = CASE WHEN NOT schedule.paused THEN excluded.due_at END,
    runs = excluded.runs, buffered_at = excluded.buffered_at, awaits = excluded.awaits,
    depends = excluded.depends, expected_by = excluded.expected_by, overdue = false, changed_at = excluded.changed_at
WHERE :replace
RETURNING id AS schedule_id;

-- The rows are found by an array of ids, as in claim: the planner can't know how many there are, and might read them all.
-- name: move_schedules
WITH {clock},
given AS MATERIALIZED (
    SELECT key AS id, value AS position,
           timestamptz 'epoch' + CAST(value ->> 1 AS bigint) * interval '1 microsecond' AS tick_at
    FROM jsonb_each(CAST(:positions AS jsonb))
)
UPDATE mainspring.schedules AS schedule
SET paused = CAST(position ->> 0 AS boolean),
    tick_at = given.tick_at,
    due_at = timestamptz 'epoch' + CAST(position ->> 2 AS bigint) * interval '1 microsecond',
    runs = CAST(position ->> 3 AS bigint),
    buffered_at = timestamptz 'epoch' + CAST(position ->> 4 AS bigint) * interval '1 microsecond',
    awaits = CAST(position ->> 5 AS boolean),
    expected_by = coalesce(
        CASE WHEN NOT CAST(position ->> 6 AS boolean) THEN expected_by END,
        coalesce(given.tick_at, CASE WHEN CAST(position ->> 5 AS boolean) THEN now END) + success_in),
    overdue = overdue AND NOT CAST(position ->> 6 AS boolean)
FROM given, clock
WHERE schedule.id = ANY (ARRAY(SELECT id FROM given)) AND schedule.id = given.id;

-- name: remove_schedules
DELETE FROM mainspring.schedules
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
RETURNING id AS schedule_id;

-- name: get_schedules
SELECT {schedule}
FROM mainspring.schedules
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))));

-- name: page_schedules
SELECT {schedule}
FROM mainspring.schedules
WHERE id > CAST(:after AS text) AND (CAST(:origin AS text) IS NULL OR origin = :origin)
  AND (NOT CAST(:nobodys AS boolean) OR team IS NULL)
ORDER BY id
LIMIT :limit;

-- name: page_schedules_of
SELECT {schedule}
FROM mainspring.schedules
WHERE team = CAST(:team AS text) AND id > CAST(:after AS text) AND (CAST(:origin AS text) IS NULL OR origin = :origin)
ORDER BY id
LIMIT :limit;

-- The limit is hidden from the planner as in claim.
-- name: coming_schedules
SELECT {schedule}
FROM mainspring.schedules
WHERE due_at IS NOT NULL AND (NOT CAST(:nobodys AS boolean) OR team IS NULL)
ORDER BY due_at
LIMIT (SELECT CAST(:limit AS bigint));

-- A team's own are found by its name and then sorted: in the order of time, few would stand among everybody's.
-- name: coming_schedules_of
WITH theirs AS MATERIALIZED (
    SELECT *
    FROM mainspring.schedules
    WHERE team = CAST(:team AS text) AND due_at IS NOT NULL
)
SELECT {schedule}
FROM theirs
ORDER BY due_at
LIMIT :limit;

-- A tick that was recorded already stays as it is, unless what became of it is one of those that may be replaced.
-- Returns the jobs that are to be made: those of the ticks that are recorded now.
-- name: keep_ticks
WITH {clock},
given AS MATERIALIZED (
    SELECT fields ->> 0 AS schedule,
           timestamptz 'epoch' + CAST(fields ->> 1 AS bigint) * interval '1 microsecond' AS at,
           timestamptz 'epoch' + CAST(fields ->> 2 AS bigint) * interval '1 microsecond' AS until,
           CAST(fields ->> 3 AS integer) AS count, fields ->> 4 AS verdict, fields ->> 5 AS reason,
           CAST(fields ->> 6 AS uuid) AS job_id
    FROM jsonb_array_elements(CAST(:ticks AS jsonb)) AS tick (fields)
)
INSERT INTO mainspring.ticks AS tick (schedule, at, until, count, verdict, reason, job_id, node, decided_at)
SELECT schedule, at, until, count, verdict, reason, job_id, :node, now
FROM given, clock
ORDER BY schedule, at
ON CONFLICT (schedule, at) DO UPDATE
SET until = excluded.until, count = excluded.count, verdict = excluded.verdict, reason = excluded.reason,
    job_id = excluded.job_id, node = excluded.node, decided_at = excluded.decided_at
WHERE tick.verdict = ANY (ARRAY(SELECT json_array_elements_text(CAST(:replaceable AS json))))
RETURNING job_id;

-- name: ticks
SELECT schedule, at, until, count, verdict, reason, job_id, node, decided_at
FROM mainspring.ticks
WHERE schedule = :schedule AND at < coalesce(CAST(:before AS timestamptz), 'infinity')
ORDER BY at DESC
LIMIT :limit;

-- Of those that begin there: what stands for one of them can't stand for the others any more.
-- name: take_spans
DELETE FROM mainspring.ticks
WHERE schedule = :schedule AND until IS NOT NULL
  AND at = ANY (ARRAY(SELECT timestamptz 'epoch' + CAST(value AS bigint) * interval '1 microsecond'
                     FROM json_array_elements_text(CAST(:ats AS json)) AS given (value)))
RETURNING at, until, count, verdict, reason;

-- Who says so last, and why, stands; it has been paused since the first said so.
-- name: note_pause
WITH {clock}
UPDATE mainspring.schedules
SET paused_by = :by, reason = :reason,
    paused_at = CASE WHEN CAST(:by AS text) IS NOT NULL THEN coalesce(paused_at, (SELECT now FROM clock)) END
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))));
