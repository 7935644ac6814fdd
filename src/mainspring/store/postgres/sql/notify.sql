-- name: any_rule
SELECT EXISTS (SELECT FROM mainspring.notifications) AS found;

-- name: rules
SELECT team, id AS rule_id, channel, created_at, changed_at
FROM mainspring.notifications
WHERE (CAST(:team AS text) IS NULL OR team = :team) AND (CAST(:id AS text) IS NULL OR id = :id)
ORDER BY team, id;

-- name: rules_of
SELECT team, channel
FROM mainspring.notifications
WHERE team = ANY (ARRAY(SELECT json_array_elements_text(CAST(:teams AS json))))
ORDER BY team, id;

-- name: room_for_rule
SELECT count(*) AS rules, count(*) FILTER (WHERE id = :id) AS known
FROM mainspring.notifications
WHERE team = :team;

-- name: lock_rule
SELECT channel
FROM mainspring.notifications
WHERE team = :team AND id = :id
FOR UPDATE;

-- name: put_rule
WITH {clock}
INSERT INTO mainspring.notifications (team, id, channel, created_at, changed_at)
SELECT CAST(:team AS text), CAST(:id AS text), CAST(:channel AS text), now, now
FROM clock
ON CONFLICT (team, id) DO UPDATE
SET channel = excluded.channel, changed_at = excluded.changed_at
RETURNING team, id AS rule_id, channel, created_at, changed_at;

-- name: remove_rule
DELETE FROM mainspring.notifications
WHERE team = :team AND id = :id
RETURNING id AS rule_id;

-- In the order of subjects and targets, as whoever locks several does.
-- name: lock_troubles
SELECT subject, target
FROM mainspring.troubles
WHERE (subject, target) IN (SELECT fields ->> 0, fields ->> 1
                            FROM jsonb_array_elements(CAST(:troubles AS jsonb)) AS trouble (fields))
ORDER BY subject, target
FOR UPDATE;

-- name: note_troubles
WITH {clock}
INSERT INTO mainspring.troubles (subject, target, told_at)
SELECT DISTINCT fields ->> 0, fields ->> 1, now
FROM clock, jsonb_array_elements(CAST(:troubles AS jsonb)) AS trouble (fields)
ORDER BY 1, 2
ON CONFLICT (subject, target) DO UPDATE
SET told_at = excluded.told_at;

-- name: end_troubles
WITH gone AS MATERIALIZED (
    SELECT subject, target
    FROM mainspring.troubles
    WHERE (subject, target) IN (SELECT fields ->> 0, fields ->> 1
                                FROM jsonb_array_elements(CAST(:troubles AS jsonb)) AS trouble (fields))
    ORDER BY subject, target
    FOR UPDATE
)
DELETE FROM mainspring.troubles AS trouble
USING gone
WHERE trouble.subject = gone.subject AND trouble.target = gone.target
RETURNING trouble.subject, trouble.target;

-- name: prune_troubles
WITH {clock},
old AS MATERIALIZED (
    SELECT subject, target
    FROM mainspring.troubles, clock
    WHERE told_at < now - CAST(:age AS interval)
    LIMIT :limit
    FOR UPDATE OF troubles SKIP LOCKED
),
gone AS (
    DELETE FROM mainspring.troubles
    WHERE (subject, target) IN (SELECT subject, target FROM old)
    RETURNING subject
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;
