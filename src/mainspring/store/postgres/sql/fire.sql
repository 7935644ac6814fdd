-- Any number of nodes may fire: none takes what another has in its hands. The limit is hidden from the planner as in claim.
-- name: lock_due_schedules
WITH {clock}
SELECT now AS now_at, {schedule}
FROM mainspring.schedules, clock
WHERE due_at <= (SELECT now FROM clock)
ORDER BY due_at
LIMIT (SELECT CAST(:limit AS bigint))
FOR UPDATE OF schedules SKIP LOCKED;

-- name: next_fire
WITH {clock}
SELECT (extract(epoch FROM due_at - now) * 1000000)::bigint AS wait_us
FROM mainspring.schedules, clock
WHERE due_at IS NOT NULL
ORDER BY due_at
LIMIT 1;

-- name: unfinished_of
SELECT schedule, id
FROM mainspring.jobs
WHERE schedule = ANY (ARRAY(SELECT json_array_elements_text(CAST(:schedules AS json))))
ORDER BY id;

-- Before any job is locked, in the order of ids: what a schedule awaits is seen only by a statement that begins when it is
-- locked, and whoever fires it locks it before its jobs.
-- name: lock_followed
SELECT id AS schedule_id
FROM mainspring.schedules
WHERE id = ANY (ARRAY(SELECT jsonb_object_keys(CAST(:ended AS jsonb)))) AND depends
ORDER BY id
FOR UPDATE;

-- After a success the next is expected from the next tick on; where that is not known yet, `move_schedules` will tell.
-- Says whether any of the schedules waited for that. In the order of ids, as whoever locks several does.
-- name: follow
WITH {clock},
given AS MATERIALIZED (
    SELECT CAST(:ended AS jsonb) AS ended
),
followed AS MATERIALIZED (
    SELECT id
    FROM mainspring.schedules
    WHERE id = ANY (ARRAY(SELECT jsonb_object_keys(ended) FROM given)) AND (awaits OR success_in IS NOT NULL)
    ORDER BY id
    FOR UPDATE
)
UPDATE mainspring.schedules AS schedule
SET ended_at = now,
    due_at = CASE WHEN awaits AND NOT paused THEN now ELSE due_at END,
    expected_by = CASE WHEN CAST((SELECT ended FROM given) ->> id AS boolean)
                       THEN tick_at + success_in ELSE expected_by END,
    overdue = overdue AND NOT CAST((SELECT ended FROM given) ->> id AS boolean)
FROM clock
WHERE schedule.id = ANY (ARRAY(SELECT id FROM followed))
RETURNING awaits;

-- What somebody has locked he moves or finds overdue himself; or the next look does.
-- name: find_overdue
WITH {clock},
found AS MATERIALIZED (
    SELECT id
    FROM mainspring.schedules
    WHERE expected_by <= (SELECT now FROM clock) AND NOT overdue AND NOT paused
    ORDER BY expected_by
    LIMIT (SELECT CAST(:limit AS bigint))
    FOR UPDATE SKIP LOCKED
)
UPDATE mainspring.schedules AS schedule
SET overdue = true
WHERE id = ANY (ARRAY(SELECT id FROM found))
RETURNING success_in, {schedule};
