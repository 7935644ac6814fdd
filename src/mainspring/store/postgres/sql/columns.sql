-- name: live
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
wish, reason, error, CAST(NULL AS timestamptz) AS finished_at, CAST(NULL AS text) AS outcome, CAST(NULL AS text) AS result

-- name: done
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
CAST(NULL AS text) AS wish, reason, error, finished_at, outcome, result

-- A statement reads the clock once, so that all its rows agree. Tests pass a time of their own as :now.
-- name: clock
clock AS MATERIALIZED (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now)
