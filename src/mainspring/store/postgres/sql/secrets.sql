-- name: room_for_secret
SELECT count(*) AS secrets, count(*) FILTER (WHERE name = :id) AS known
FROM mainspring.secrets
WHERE team = :team;

-- name: put_secret
WITH {clock}
INSERT INTO mainspring.secrets (team, name, sealed, key_id, created_at, changed_at, changed_by)
SELECT :team, :name, :sealed, :key_id, now, now, :by
FROM clock
ON CONFLICT (team, name) DO UPDATE
SET sealed = excluded.sealed, key_id = excluded.key_id,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: secrets
SELECT team, name, key_id, created_at, changed_at, changed_by
FROM mainspring.secrets
WHERE CAST(:team AS text) IS NULL OR team = :team
ORDER BY team, name;

-- name: sealed_secrets
SELECT team, name, sealed
FROM mainspring.secrets
WHERE (team, name) IN (
    SELECT fields ->> 0, fields ->> 1
    FROM jsonb_array_elements(CAST(:names AS jsonb)) AS wanted (fields)
);

-- name: outdated_secrets
SELECT team, name, sealed
FROM mainspring.secrets
WHERE key_id <> :key_id AND (CAST(:team AS text) IS NULL OR team = :team)
ORDER BY team, name;

-- One that was set anew meanwhile stays as it is.
-- name: reseal_secret
UPDATE mainspring.secrets
SET sealed = :sealed, key_id = :key_id
WHERE team = :team AND name = :name AND sealed = :before;

-- name: remove_secret
DELETE FROM mainspring.secrets
WHERE team = :team AND name = :name
RETURNING name;
