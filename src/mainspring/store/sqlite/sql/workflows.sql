-- name: lock_parents
UPDATE mainspring_jobs
SET awaited = TRUE
WHERE id IN (SELECT value FROM json_each(:ids)) AND NOT awaited;

SELECT id
FROM mainspring_jobs
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: endings_of
SELECT id, state
FROM mainspring_jobs_done
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;

-- name: lock_endings
SELECT id, state, workflow
FROM mainspring_jobs_done
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;

-- name: link
INSERT INTO mainspring_edges (parent, child, if_failed)
SELECT value ->> 0, value ->> 1, value ->> 2
FROM json_each(:edges)
WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: unlink
DELETE FROM mainspring_edges
WHERE parent IN (SELECT value FROM json_each(:parents)) AND if_failed <> :except
RETURNING parent, child, if_failed;

-- What is left of the former life of a child that is about to be linked anew.
-- name: cut
DELETE FROM mainspring_edges
WHERE (parent, child) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:edges));

-- name: count_down
UPDATE mainspring_jobs
SET pending = max(coalesce(pending, 0) - given.ended, 0)
FROM (SELECT key AS job_id, value AS ended FROM json_each(:counts)) AS given
WHERE mainspring_jobs.id = given.job_id
RETURNING mainspring_jobs.id, mainspring_jobs.pending;

-- name: put_follow_ups
INSERT INTO mainspring_follow_ups (job_id, what)
SELECT value ->> 0, value ->> 1
FROM json_each(:follow_ups)
WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: follow_ups
SELECT DISTINCT what
FROM mainspring_follow_ups;

-- name: left_to_follow_up
SELECT job_id
FROM mainspring_follow_ups
WHERE what = :what
LIMIT :limit;

-- name: take_follow_ups
DELETE FROM mainspring_follow_ups
WHERE job_id IN (SELECT value FROM json_each(:ids)) AND what = :what
RETURNING job_id;

-- What has not been done yet about jobs that live again is not to be done any more.
-- name: drop_follow_ups
DELETE FROM mainspring_follow_ups
WHERE job_id IN (SELECT value FROM json_each(:ids)) AND what IN ('link', 'tell')
RETURNING job_id, what;

-- name: unfinished_members
SELECT workflow, id, state
FROM mainspring_jobs
WHERE workflow IN (SELECT value FROM json_each(:workflows));

-- name: tally
SELECT state, count(*) AS members
FROM mainspring_jobs_done
WHERE workflow = :workflow
GROUP BY state;

-- name: failed_members
SELECT {done}
FROM mainspring_jobs_done
WHERE workflow = :workflow AND state IN ('failed', 'expired')
ORDER BY finished_at, id
LIMIT :limit;

-- name: lock_unsuccessful_members
SELECT {done}
FROM mainspring_jobs_done
WHERE workflow IN (SELECT value FROM json_each(:workflows)) AND state <> 'succeeded'
ORDER BY id;

-- Only what comes after others can have been cancelled because of one.
-- name: lock_cancelled_members
SELECT {done}
FROM mainspring_jobs_done
WHERE workflow IN (SELECT value FROM json_each(:workflows))
  AND state = 'cancelled' AND links IS NOT NULL
ORDER BY id;

-- name: members
SELECT {live}
FROM mainspring_jobs
WHERE workflow = :workflow AND id > :after
UNION ALL
SELECT {done}
FROM mainspring_jobs_done
WHERE workflow = :workflow AND id > :after
ORDER BY id
LIMIT :limit;

-- name: first_unfinished
SELECT {live}
FROM mainspring_jobs
WHERE workflow = :workflow
ORDER BY state = 'blocked', id
LIMIT :limit;

-- name: member_counts
SELECT workflow, state, count(*) AS members
FROM (
    SELECT workflow, state FROM mainspring_jobs WHERE workflow IN (SELECT value FROM json_each(:workflows))
    UNION ALL
    SELECT workflow, state FROM mainspring_jobs_done WHERE workflow IN (SELECT value FROM json_each(:workflows))
)
GROUP BY workflow, state;

-- name: results
SELECT id, task, state, result, plan
FROM mainspring_jobs_done
WHERE id IN (SELECT value FROM json_each(:ids));

-- Those that a map was made of come after nobody, and were not added by one of them: they have no links.
-- name: gathered
SELECT id, task, state, result, plan
FROM mainspring_jobs_done
WHERE workflow = :workflow AND links IS NULL
ORDER BY id;

-- name: gathered_size
SELECT coalesce(sum(length(result)), 0) AS characters
FROM mainspring_jobs_done
WHERE workflow = :workflow AND links IS NULL;

-- name: workflow_page
SELECT * FROM (
    SELECT {live}
    FROM mainspring_jobs
    WHERE id < coalesce(:before, 'g')
      AND plan IS NOT NULL AND workflow IS NULL
      AND (:team IS NULL OR coalesce(team, 'default') = :team)
    ORDER BY id DESC
    LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT {done}
    FROM mainspring_jobs_done
    WHERE id < coalesce(:before, 'g')
      AND plan IS NOT NULL AND workflow IS NULL
      AND (:team IS NULL OR coalesce(team, 'default') = :team)
    ORDER BY id DESC
    LIMIT :limit
)
ORDER BY id DESC
LIMIT :limit;

-- name: prune_edges
DELETE FROM mainspring_edges
WHERE (parent, child) IN (
    SELECT parent, child
    FROM mainspring_edges AS edge
    WHERE edge.parent < :before AND NOT EXISTS (SELECT 1 FROM mainspring_jobs WHERE id = edge.child)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- Children that wait for the replay of a parent which was pruned meanwhile.
-- name: orphans
SELECT DISTINCT edge.child AS id
FROM mainspring_edges AS edge
WHERE edge.parent < :before
  AND NOT EXISTS (SELECT 1 FROM mainspring_jobs WHERE id = edge.parent)
  AND NOT EXISTS (SELECT 1 FROM mainspring_jobs_done WHERE id = edge.parent)
LIMIT :limit;
