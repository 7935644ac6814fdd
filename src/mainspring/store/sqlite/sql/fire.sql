-- name: lock_due_schedules
SELECT :now AS now_at, {schedule}
FROM mainspring_schedules
WHERE due_at <= :now
ORDER BY due_at
LIMIT :limit;

-- name: next_fire
SELECT due_at - :now AS wait_us
FROM mainspring_schedules
WHERE due_at IS NOT NULL
ORDER BY due_at
LIMIT 1;

-- name: unfinished_of
SELECT schedule, id
FROM mainspring_jobs
WHERE schedule IN (SELECT value FROM json_each(:schedules))
ORDER BY id;

-- name: lock_followed
SELECT id AS schedule_id
FROM mainspring_schedules
WHERE id IN (SELECT key FROM json_each(:ended)) AND depends;

-- After a success the next is expected from the next tick on; where that is not known yet, `move_schedules` will tell.
-- Says whether any of the schedules waited for that.
-- name: follow
UPDATE mainspring_schedules
SET ended_at = :now,
    due_at = CASE WHEN awaits AND NOT paused THEN :now ELSE due_at END,
    expected_by = CASE WHEN ended.value THEN tick_at + success_in ELSE expected_by END,
    overdue = overdue AND NOT ended.value
FROM json_each(:ended) AS ended
WHERE mainspring_schedules.id = ended.key AND (awaits OR success_in IS NOT NULL)
RETURNING awaits;

-- name: find_overdue
UPDATE mainspring_schedules
SET overdue = 1
WHERE id IN (
    SELECT id
    FROM mainspring_schedules
    WHERE expected_by <= :now AND NOT overdue AND NOT paused
    ORDER BY expected_by
    LIMIT :limit
)
RETURNING success_in, {schedule};
