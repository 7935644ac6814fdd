-- name: room_for_secret
SELECT count(*) AS secrets, count(*) FILTER (WHERE name = :id) AS known
FROM mainspring_secrets
WHERE team = :team;

-- name: put_secret
INSERT INTO mainspring_secrets (team, name, sealed, key_id, created_at, changed_at, changed_by)
VALUES (:team, :name, :sealed, :key_id, :now, :now, :by)
ON CONFLICT (team, name) DO UPDATE
SET sealed = excluded.sealed, key_id = excluded.key_id,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: secrets
SELECT team, name, key_id, created_at, changed_at, changed_by
FROM mainspring_secrets
WHERE :team IS NULL OR team = :team
ORDER BY team, name;

-- name: sealed_secrets
SELECT team, name, sealed
FROM mainspring_secrets
WHERE (team, name) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:names));

-- name: outdated_secrets
SELECT team, name, sealed
FROM mainspring_secrets
WHERE key_id <> :key_id AND (:team IS NULL OR team = :team)
ORDER BY team, name;

-- One that was set anew meanwhile stays as it is.
-- name: reseal_secret
UPDATE mainspring_secrets
SET sealed = :sealed, key_id = :key_id
WHERE team = :team AND name = :name AND sealed = :before;

-- name: remove_secret
DELETE FROM mainspring_secrets
WHERE team = :team AND name = :name
RETURNING name;
