-- Parents stay what they are until the child that wants them is committed: one that ends looks for children afterwards.
-- name: lock_parents
WITH locked AS MATERIALIZED (
    SELECT id, awaited
    FROM mainspring.jobs
    WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
    ORDER BY id
    FOR NO KEY UPDATE
),
marked AS (
    UPDATE mainspring.jobs
    SET awaited = true
    WHERE id = ANY (ARRAY(SELECT id FROM locked WHERE NOT awaited))
)
SELECT id
FROM locked;

-- None of them is replayed before we have committed: whoever does so looks afterwards whether anybody waits for it.
-- name: endings_of
SELECT id, state
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
ORDER BY id
FOR KEY SHARE;

-- name: lock_endings
SELECT id, state, workflow
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
ORDER BY id
FOR KEY SHARE SKIP LOCKED;

-- name: link
INSERT INTO mainspring.edges (parent, child, if_failed)
SELECT CAST(fields ->> 0 AS uuid), CAST(fields ->> 1 AS uuid), fields ->> 2
FROM jsonb_array_elements(CAST(:edges AS jsonb)) AS edge (fields)
ON CONFLICT DO NOTHING;

-- name: unlink
DELETE FROM mainspring.edges
WHERE parent = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:parents AS json)) AS uuid)))
  AND if_failed <> :except
RETURNING parent, child, if_failed;

-- What is left of the former life of a child that is about to be linked anew.
-- name: cut
DELETE FROM mainspring.edges AS edge
USING jsonb_array_elements(CAST(:edges AS jsonb)) AS given (fields)
WHERE edge.parent = CAST(fields ->> 0 AS uuid) AND edge.child = CAST(fields ->> 1 AS uuid);

-- In the order of ids, as everybody locks who sets others free; so no two of them wait for each other in a circle.
-- name: count_down
WITH given AS MATERIALIZED (
    SELECT CAST(key AS uuid) AS job_id, CAST(value AS integer) AS ended
    FROM jsonb_each_text(CAST(:counts AS jsonb))
),
locked AS MATERIALIZED (
    SELECT id
    FROM mainspring.jobs
    WHERE id = ANY (ARRAY(SELECT job_id FROM given))
    ORDER BY id
    FOR UPDATE
)
UPDATE mainspring.jobs AS job
SET pending = greatest(coalesce(job.pending, 0) - given.ended, 0)
FROM given
WHERE job.id = ANY (ARRAY(SELECT id FROM locked)) AND job.id = given.job_id
RETURNING job.id, job.pending;

-- name: put_follow_ups
INSERT INTO mainspring.follow_ups (job_id, what)
SELECT CAST(fields ->> 0 AS uuid), fields ->> 1
FROM jsonb_array_elements(CAST(:follow_ups AS jsonb)) AS given (fields)
ON CONFLICT DO NOTHING;

-- name: follow_ups
SELECT DISTINCT what
FROM mainspring.follow_ups;

-- name: left_to_follow_up
SELECT job_id
FROM mainspring.follow_ups
WHERE what = :what
LIMIT :limit;

-- name: take_follow_ups
DELETE FROM mainspring.follow_ups
WHERE job_id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid))) AND what = :what
RETURNING job_id;

-- What has not been done yet about jobs that live again is not to be done any more.
-- name: drop_follow_ups
DELETE FROM mainspring.follow_ups
WHERE job_id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)))
  AND what IN ('link', 'tell')
RETURNING job_id, what;

-- name: unfinished_members
SELECT workflow, id, state
FROM mainspring.jobs
WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:workflows AS json)) AS uuid)));

-- name: tally
SELECT state, count(*) AS members
FROM mainspring.jobs_done
WHERE workflow = :workflow
GROUP BY state;

-- name: failed_members
SELECT {done}
FROM mainspring.jobs_done
WHERE workflow = :workflow AND state IN ('failed', 'expired')
ORDER BY finished_at, id
LIMIT :limit;

-- name: lock_unsuccessful_members
SELECT {done}
FROM mainspring.jobs_done
WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:workflows AS json)) AS uuid)))
  AND state <> 'succeeded'
ORDER BY id
FOR UPDATE;

-- Only what comes after others can have been cancelled because of one.
-- name: lock_cancelled_members
SELECT {done}
FROM mainspring.jobs_done
WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:workflows AS json)) AS uuid)))
  AND state = 'cancelled' AND links IS NOT NULL
ORDER BY id
FOR UPDATE;

-- name: members
SELECT {live}
FROM mainspring.jobs
WHERE workflow = :workflow AND id > :after
UNION ALL
SELECT {done}
FROM mainspring.jobs_done
WHERE workflow = :workflow AND id > :after
ORDER BY id
LIMIT :limit;

-- name: first_unfinished
SELECT {live}
FROM mainspring.jobs
WHERE workflow = :workflow
ORDER BY state = 'blocked', id
LIMIT :limit;

-- name: member_counts
SELECT workflow, state, count(*) AS members
FROM (
    SELECT workflow, state FROM mainspring.jobs
    WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:workflows AS json)) AS uuid)))
    UNION ALL
    SELECT workflow, state FROM mainspring.jobs_done
    WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:workflows AS json)) AS uuid)))
) AS every
GROUP BY workflow, state;

-- name: results
SELECT id, task, state, result, plan
FROM mainspring.jobs_done
WHERE id = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)));

-- Those that a map was made of come after nobody, and were not added by one of them: they have no links.
-- name: gathered
SELECT id, task, state, result, plan
FROM mainspring.jobs_done
WHERE workflow = :workflow AND links IS NULL
ORDER BY id;

-- name: gathered_size
SELECT coalesce(sum(length(result)), 0) AS characters
FROM mainspring.jobs_done
WHERE workflow = :workflow AND links IS NULL;

-- name: workflow_page
SELECT * FROM (
    SELECT {live}
    FROM mainspring.jobs
    WHERE id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      AND plan IS NOT NULL AND workflow IS NULL
      AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team)
    ORDER BY id DESC
    LIMIT :limit
) AS unfinished
UNION ALL
SELECT * FROM (
    SELECT {done}
    FROM mainspring.jobs_done
    WHERE id < coalesce(CAST(:before AS uuid), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      AND plan IS NOT NULL AND workflow IS NULL
      AND (CAST(:team AS text) IS NULL OR coalesce(team, 'default') = :team)
    ORDER BY id DESC
    LIMIT :limit
) AS finished
ORDER BY id DESC
LIMIT :limit;

-- Edges whose child waits no more.
-- name: prune_edges
WITH old AS MATERIALIZED (
    SELECT edge.ctid
    FROM mainspring.edges AS edge
    WHERE edge.parent < :before AND NOT EXISTS (SELECT FROM mainspring.jobs WHERE id = edge.child)
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.edges
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
    RETURNING parent
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;

-- Children that wait for the replay of a parent which was pruned meanwhile.
-- name: orphans
SELECT DISTINCT edge.child AS id
FROM mainspring.edges AS edge
WHERE edge.parent < :before
  AND NOT EXISTS (SELECT FROM mainspring.jobs WHERE id = edge.parent)
  AND NOT EXISTS (SELECT FROM mainspring.jobs_done WHERE id = edge.parent)
LIMIT :limit;
