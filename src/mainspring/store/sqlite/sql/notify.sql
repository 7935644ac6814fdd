-- name: any_rule
SELECT EXISTS (SELECT 1 FROM mainspring_notifications) AS found;

-- name: rules
SELECT team, id AS rule_id, channel, created_at, changed_at
FROM mainspring_notifications
WHERE (:team IS NULL OR team = :team) AND (:id IS NULL OR id = :id)
ORDER BY team, id;

-- name: rules_of
SELECT team, channel
FROM mainspring_notifications
WHERE team IN (SELECT value FROM json_each(:teams))
ORDER BY team, id;

-- name: room_for_rule
SELECT count(*) AS rules, count(*) FILTER (WHERE id = :id) AS known
FROM mainspring_notifications
WHERE team = :team;

-- name: lock_rule
SELECT channel
FROM mainspring_notifications
WHERE team = :team AND id = :id;

-- name: put_rule
INSERT INTO mainspring_notifications (team, id, channel, created_at, changed_at)
VALUES (:team, :id, :channel, :now, :now)
ON CONFLICT (team, id) DO UPDATE
SET channel = excluded.channel, changed_at = excluded.changed_at
RETURNING team, id AS rule_id, channel, created_at, changed_at;

-- name: remove_rule
DELETE FROM mainspring_notifications
WHERE team = :team AND id = :id
RETURNING id AS rule_id;

-- Nobody else has a transaction that writes.
-- name: lock_troubles
SELECT subject, target
FROM mainspring_troubles
WHERE (subject, target) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:troubles));

-- name: note_troubles
INSERT INTO mainspring_troubles (subject, target, told_at)
SELECT value ->> 0, value ->> 1, :now
FROM json_each(:troubles)
WHERE TRUE
ON CONFLICT (subject, target) DO UPDATE
SET told_at = excluded.told_at;

-- name: end_troubles
DELETE FROM mainspring_troubles
WHERE (subject, target) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:troubles))
RETURNING subject, target;

-- name: prune_troubles
DELETE FROM mainspring_troubles
WHERE (subject, target) IN (
    SELECT subject, target
    FROM mainspring_troubles
    WHERE told_at < :now - :age
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;
