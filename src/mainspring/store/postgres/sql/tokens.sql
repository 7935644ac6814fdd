-- A try whose reply was lost is repeated with the same digest, and finds what it has made.
-- name: create_token
WITH {clock}
INSERT INTO mainspring.tokens AS known (id, digest, name, grants, created_at, created_by, expires_at)
SELECT :token, :digest, :name, :grants, now, :by, now + CAST(:lasting AS interval)
FROM clock
ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE known.digest = excluded.digest
RETURNING {token};

-- One that was last used later than now was used before the clock was set back.
-- name: look_at_token
WITH {clock}
SELECT digest, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now) AS live,
       coalesce(last_used_at NOT BETWEEN now - CAST(:every AS interval) AND now, true) AS idle, {token}
FROM mainspring.tokens, clock
WHERE id = :token;

-- name: use_token
WITH {clock}
UPDATE mainspring.tokens
SET last_used_at = (SELECT now FROM clock)
WHERE id = :token
  AND coalesce(last_used_at NOT BETWEEN (SELECT now - CAST(:every AS interval) FROM clock)
                                    AND (SELECT now FROM clock), true);

-- name: revoke_token
WITH {clock}
UPDATE mainspring.tokens
SET revoked_at = coalesce(revoked_at, (SELECT now FROM clock))
WHERE id = :token
RETURNING {token};

-- name: get_token
SELECT {token}
FROM mainspring.tokens
WHERE id = :token;

-- name: tokens
SELECT {token}
FROM mainspring.tokens
ORDER BY created_at, id;
