-- Differs from PostgreSQL: no SKIP LOCKED and no lock on the session, because there is one writer at a time.
-- name: claim
UPDATE mainspring_jobs
SET state = 'running', session = :session, started_at = :now, fence = fence + 1, attempt = attempt + 1
WHERE rowid IN (
    SELECT rowid
    FROM mainspring_jobs
    WHERE state = 'ready' AND queue = :queue
      AND EXISTS (
          SELECT 1 FROM mainspring_sessions
          WHERE id = :session AND lease_until > :steady AND lease_until <= :steady + lease
      )
    ORDER BY rank
    LIMIT :limit
)
RETURNING {claimed};
