-- name: live
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
wish, reason, error, NULL AS finished_at, NULL AS outcome, NULL AS result

-- name: done
id, task, queue, payload, priority, state, run_at, created_at, key, attempt, losses, fence, session, started_at,
NULL AS wish, reason, error, finished_at, outcome, result
