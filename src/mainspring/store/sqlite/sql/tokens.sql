-- A try whose reply was lost is repeated with the same digest, and finds what it has made.
-- name: create_token
INSERT INTO mainspring_tokens (id, digest, name, grants, created_at, created_by, expires_at)
VALUES (:token, :digest, :name, :grants, :now, :by, :now + :lasting)
ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE digest = excluded.digest
RETURNING {token};

-- One that was last used later than now was used before the clock was set back.
-- name: look_at_token
SELECT digest, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) AS live,
       coalesce(last_used_at NOT BETWEEN :now - :every AND :now, TRUE) AS idle, {token}
FROM mainspring_tokens
WHERE id = :token;

-- name: use_token
UPDATE mainspring_tokens
SET last_used_at = :now
WHERE id = :token AND coalesce(last_used_at NOT BETWEEN :now - :every AND :now, TRUE);

-- name: revoke_token
UPDATE mainspring_tokens
SET revoked_at = coalesce(revoked_at, :now)
WHERE id = :token
RETURNING {token};

-- name: get_token
SELECT {token}
FROM mainspring_tokens
WHERE id = :token;

-- name: tokens
SELECT {token}
FROM mainspring_tokens
ORDER BY created_at, id;
