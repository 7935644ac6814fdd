-- name: retention
SELECT team, queue, state, age, keep, reached, changes
FROM mainspring.retention
ORDER BY team = '', team, queue = '', queue, state = '', state;

-- name: put_retention
WITH put AS (
    INSERT INTO mainspring.retention (team, queue, state, age, keep, changes)
    SELECT :team, :queue, :state, CAST(:age AS interval), :keep, max(changes) + 1
    FROM mainspring.retention
    ON CONFLICT (team, queue, state) DO UPDATE
    SET age = excluded.age, keep = excluded.keep, reached = NULL, changes = excluded.changes
    RETURNING changes
)
UPDATE mainspring.retention AS other
SET reached = NULL, changes = put.changes
FROM put
WHERE (other.team, other.queue, other.state) <> (:team, :queue, :state);

-- name: remove_retention
WITH removed AS (
    DELETE FROM mainspring.retention
    WHERE (team, queue, state) = (:team, :queue, :state) AND (team, queue, state) <> ('', '', '')
    RETURNING team
),
others AS (
    UPDATE mainspring.retention
    SET reached = NULL, changes = changes + 1
    WHERE (team, queue, state) <> (:team, :queue, :state) AND EXISTS (SELECT FROM removed)
)
SELECT team
FROM removed;

-- If no rule was changed since it was read.
-- name: reach_retention
UPDATE mainspring.retention
SET reached = :reached
WHERE (team, queue, state) = (:team, :queue, :state) AND changes = :changes
  AND (reached IS NULL OR reached < :reached);

-- Differs from SQLite: by the names of the partitions, of which some may be empty. These are found first: the planner
-- may ask a condition of every name in the catalog before it asks whose partition that is, and most don't end with a day.
-- name: finished_days
WITH names AS MATERIALIZED (
    SELECT relname
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = CAST('mainspring.jobs_done' AS regclass)
),
days AS (
    SELECT CAST(to_date(right(relname, 8), 'YYYYMMDD') AS timestamp) AT TIME ZONE 'UTC' AS at
    FROM names
)
SELECT at
FROM days
WHERE at BETWEEN coalesce(CAST(:since AS timestamptz), '-infinity') AND :until
ORDER BY at;

-- How many jobs of a team, up to so many, have ended.
-- name: ended_of_team
SELECT count(*) AS ended
FROM (SELECT 1 FROM mainspring.jobs_done WHERE team = :team LIMIT :most) AS jobs;

-- How many jobs of each team, queue and state ended in each minute, among the next few of a day; and where to go on.
-- name: tally_page
WITH {page_of_day},
tally AS MATERIALIZED (
    SELECT coalesce(team, 'default') AS team, queue, state, date_trunc('minute', finished_at, 'UTC') AS minute,
           count(*) AS jobs
    FROM page
    WHERE {on_its_own}
    GROUP BY 1, 2, 3, 4
)
SELECT CAST(:since AS timestamptz) AS at, (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS id,
       (SELECT CAST(coalesce(json_agg(json_build_array(team, queue, state,
                                                       CAST(extract(epoch FROM minute) * 1000000 AS bigint), jobs)), '[]')
                    AS text)
        FROM tally) AS tally
WHERE EXISTS (SELECT FROM page);

-- name: nth_newest
SELECT finished_at, id
FROM mainspring.jobs_done AS page
WHERE finished_at >= :since AND finished_at < :until AND filed_at >= :since AND {covered} AND {on_its_own}
ORDER BY finished_at DESC, id DESC
OFFSET :skip
LIMIT 1;

-- What goes among the next few of a day, each with when it was made and filed; and where to go on.
-- name: going_page
WITH {page_of_day}
SELECT CAST(:since AS timestamptz) AS at, (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS id,
       (SELECT CAST(coalesce(json_agg(json_build_array(id, CAST(extract(epoch FROM created_at) * 1000000 AS bigint),
                                                       CAST(extract(epoch FROM filed_at) * 1000000 AS bigint),
                                                       plan IS NOT NULL)), '[]') AS text)
        FROM page
        WHERE (finished_at, id) < (CAST(:edge_at AS timestamptz), CAST(:edge_id AS uuid)) AND {covered} AND {on_its_own}
       ) AS going
WHERE EXISTS (SELECT FROM page);

-- Forget jobs as they were filed, with all that is kept of them, and say how many. One that has lived again since is left,
-- and so is what another has in his hands, who forgets it or brings it back to life. Of a workflow it is noted that its members
-- are to go. What attempts left lies between the first job's making and the last one's end.
-- name: forget
WITH given AS MATERIALIZED (
    SELECT CAST(fields ->> 0 AS uuid) AS id,
           timestamptz 'epoch' + CAST(fields ->> 2 AS bigint) * interval '1 microsecond' AS filed_at
    FROM jsonb_array_elements(CAST(:going AS jsonb)) AS job (fields)
),
locked AS MATERIALIZED (
    SELECT done.id, done.filed_at
    FROM mainspring.jobs_done AS done
    WHERE done.id = ANY (ARRAY(SELECT id FROM given)) AND done.filed_at BETWEEN :since AND :until
      AND (done.id, done.filed_at) IN (SELECT id, filed_at FROM given)
    ORDER BY done.id
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.jobs_done
    WHERE id = ANY (ARRAY(SELECT id FROM locked)) AND filed_at BETWEEN :since AND :until
    RETURNING id, plan
),
families AS (
    INSERT INTO mainspring.pruned (workflow)
    SELECT id FROM gone WHERE plan IS NOT NULL
    ON CONFLICT DO NOTHING
),
their_attempts AS (
    DELETE FROM mainspring.attempts
    WHERE job_id = ANY (ARRAY(SELECT id FROM locked)) AND finished_at BETWEEN :since AND :until
),
their_logs AS (
    DELETE FROM mainspring.logs
    WHERE job_id = ANY (ARRAY(SELECT id FROM locked)) AND at BETWEEN :since AND :until
),
their_steps AS (
    DELETE FROM mainspring.steps WHERE job_id = ANY (ARRAY(SELECT id FROM locked))
),
their_signals AS (
    DELETE FROM mainspring.signals WHERE job_id = ANY (ARRAY(SELECT id FROM locked))
)
SELECT count(*) AS pruned
FROM gone;

-- name: pruned_workflow
SELECT workflow
FROM mainspring.pruned
ORDER BY workflow
LIMIT 1;

-- name: members_to_go
SELECT CAST(coalesce(json_agg(json_build_array(id, CAST(extract(epoch FROM created_at) * 1000000 AS bigint),
                                               CAST(extract(epoch FROM filed_at) * 1000000 AS bigint), plan IS NOT NULL)),
                     '[]') AS text) AS going
FROM (
    SELECT id, created_at, filed_at, plan
    FROM mainspring.jobs_done
    WHERE workflow = :workflow
    ORDER BY id
    LIMIT (SELECT CAST(:limit AS bigint))
) AS members;

-- name: members_are_gone
DELETE FROM mainspring.pruned
WHERE workflow = :workflow;

-- How many members workflows have that have ended, and which of these are workflows themselves.
-- name: family
SELECT count(*) AS members,
       CAST(coalesce(json_agg(id) FILTER (WHERE plan IS NOT NULL), '[]') AS text) AS workflows
FROM mainspring.jobs_done
WHERE workflow = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST(:ids AS json)) AS uuid)));
