-- name: retention
SELECT team, queue, state, age, keep, reached, changes
FROM mainspring_retention
ORDER BY team = '', team, queue = '', queue, state = '', state;

-- name: put_retention
UPDATE mainspring_retention
SET reached = NULL, changes = changes + 1;

INSERT INTO mainspring_retention (team, queue, state, age, keep, changes)
SELECT :team, :queue, :state, :age, :keep, max(changes)
FROM mainspring_retention
WHERE TRUE
ON CONFLICT (team, queue, state) DO UPDATE SET age = excluded.age, keep = excluded.keep;

-- name: remove_retention
UPDATE mainspring_retention
SET reached = NULL, changes = changes + 1
WHERE EXISTS (
    SELECT 1 FROM mainspring_retention AS known WHERE (known.team, known.queue, known.state) = (:team, :queue, :state)
);

DELETE FROM mainspring_retention
WHERE (team, queue, state) = (:team, :queue, :state) AND (team, queue, state) <> ('', '', '')
RETURNING team;

-- If no rule was changed since it was read.
-- name: reach_retention
UPDATE mainspring_retention
SET reached = :reached
WHERE (team, queue, state) = (:team, :queue, :state) AND changes = :changes
  AND (reached IS NULL OR reached < :reached);

-- Differs from PostgreSQL: no partitions, so from one day to the next by the index.
-- name: finished_days
WITH RECURSIVE days (day) AS (
    SELECT (
        SELECT min(finished_at) FROM mainspring_jobs_done WHERE finished_at >= coalesce(:since, 0)
    ) / 86400000000 * 86400000000
    UNION ALL
    SELECT (
        SELECT min(finished_at) FROM mainspring_jobs_done WHERE finished_at >= days.day + 86400000000
    ) / 86400000000 * 86400000000
    FROM days
    WHERE days.day IS NOT NULL
)
SELECT day AS at
FROM days
WHERE day <= :until
ORDER BY day;

-- How many jobs of a team, up to so many, have ended.
-- name: ended_of_team
SELECT count(*) AS ended
FROM (SELECT 1 FROM mainspring_jobs_done WHERE team = :team LIMIT :most) AS jobs;

-- How many jobs of each team, queue and state ended in each minute, among the next few of a day; and where to go on.
-- name: tally_page
WITH {page_of_day},
tally AS MATERIALIZED (
    SELECT coalesce(team, 'default') AS team, queue, state, finished_at / 60000000 * 60000000 AS minute, count(*) AS jobs
    FROM page
    WHERE {on_its_own}
    GROUP BY 1, 2, 3, 4
)
SELECT (SELECT max(finished_at) FROM page) AS at,
       (SELECT id FROM page ORDER BY finished_at DESC, id DESC LIMIT 1) AS id,
       (SELECT json_group_array(json_array(team, queue, state, minute, jobs)) FROM tally) AS tally
WHERE EXISTS (SELECT 1 FROM page);

-- name: nth_newest
SELECT finished_at, id
FROM mainspring_jobs_done AS page
WHERE finished_at >= :since AND finished_at < :until AND {covered} AND {on_its_own}
ORDER BY finished_at DESC, id DESC
LIMIT 1
OFFSET :skip;

-- What goes among the next few of a day, each with when it was made and filed; and where to go on.
-- name: going_page
WITH {page_of_day}
SELECT (SELECT max(finished_at) FROM page) AS at,
       (SELECT id FROM page ORDER BY finished_at DESC, id DESC LIMIT 1) AS id,
       (SELECT json_group_array(json_array(id, created_at, finished_at, plan IS NOT NULL))
        FROM page
        WHERE (finished_at, id) < (:edge_at, :edge_id) AND {covered} AND {on_its_own}
       ) AS going
WHERE EXISTS (SELECT 1 FROM page);

-- Forget jobs as they were filed, with all that is kept of them, and say how many. One that has lived again since is left.
-- Of a workflow it is noted that its members are to go.
-- name: forget
INSERT INTO mainspring_pruned (workflow)
SELECT id
FROM mainspring_jobs_done
WHERE {given_to_forget} AND plan IS NOT NULL
ON CONFLICT DO NOTHING;

DELETE FROM mainspring_attempts
WHERE job_id IN (SELECT id FROM mainspring_jobs_done WHERE {given_to_forget}) AND finished_at BETWEEN :since AND :until;

DELETE FROM mainspring_logs
WHERE job_id IN (SELECT id FROM mainspring_jobs_done WHERE {given_to_forget}) AND at BETWEEN :since AND :until;

DELETE FROM mainspring_steps
WHERE job_id IN (SELECT id FROM mainspring_jobs_done WHERE {given_to_forget});

DELETE FROM mainspring_signals
WHERE job_id IN (SELECT id FROM mainspring_jobs_done WHERE {given_to_forget});

DELETE FROM mainspring_jobs_done
WHERE {given_to_forget};

SELECT changes() AS pruned;

-- name: pruned_workflow
SELECT workflow
FROM mainspring_pruned
ORDER BY workflow
LIMIT 1;

-- name: members_to_go
SELECT json_group_array(json_array(id, created_at, finished_at, plan IS NOT NULL)) AS going
FROM (
    SELECT id, created_at, finished_at, plan
    FROM mainspring_jobs_done
    WHERE workflow = :workflow
    ORDER BY id
    LIMIT :limit
) AS members;

-- name: members_are_gone
DELETE FROM mainspring_pruned
WHERE workflow = :workflow;

-- How many members workflows have that have ended, and which of these are workflows themselves.
-- name: family
SELECT count(*) AS members, json_group_array(id) FILTER (WHERE plan IS NOT NULL) AS workflows
FROM mainspring_jobs_done
WHERE workflow IN (SELECT value FROM json_each(:ids));
