-- name: lock_team
SELECT {team}
FROM mainspring.teams
WHERE name = :team
FOR UPDATE;

-- name: put_team
WITH {clock}
INSERT INTO mainspring.teams AS team (name, max_pending, max_schedules, gap, burst, created_at)
SELECT :team, CAST(:max_pending AS bigint), CAST(:max_schedules AS bigint), CAST(:gap AS interval),
       CAST(:burst AS bigint), now
FROM clock
ON CONFLICT (name) DO UPDATE
SET max_pending = excluded.max_pending, max_schedules = excluded.max_schedules, gap = excluded.gap,
    burst = excluded.burst
RETURNING {team};

-- name: teams
SELECT {team}
FROM mainspring.teams
WHERE CAST(:team AS text) IS NULL OR name = :team
ORDER BY name;

-- name: remove_team
DELETE FROM mainspring.teams
WHERE name = :team
RETURNING name;

-- One statement, which waits for whoever takes at the same time and judges by what he has left.
-- name: take_of_team
WITH {clock}
UPDATE mainspring.teams
SET full_at = {filling} + CAST(:jobs AS bigint) * gap
FROM clock
WHERE name = :team AND {filling} + CAST(:jobs AS bigint) * gap <= now + burst * gap
RETURNING name;

-- name: bucket_of_team
WITH {clock}
SELECT now AS now_at, gap, burst, full_at
FROM mainspring.teams, clock
WHERE name = :team AND gap IS NOT NULL;

-- Or it would seem to be empty for as long as the clock was set back by.
-- name: mend_team
WITH {clock}
UPDATE mainspring.teams
SET full_at = {filling}
FROM clock
WHERE name = :team AND full_at > now + burst * gap;

-- name: pending_of_team
SELECT count(*) AS pending
FROM (SELECT queue FROM mainspring.jobs WHERE team = :team LIMIT :looked) AS jobs
WHERE queue <> :left_out;

-- No index tells those apart that are the default team's, so that these cost nothing: of all jobs some are looked at.
-- name: pending_of_nobody
SELECT count(*) AS pending
FROM (SELECT team, queue FROM mainspring.jobs LIMIT :looked) AS jobs
WHERE team IS NULL AND queue <> :left_out;

-- name: schedules_of_team
SELECT count(*) AS schedules
FROM mainspring.schedules
WHERE coalesce(team, 'default') = :team;

-- Before the count, in a statement of its own: so that sees what those have added who had the lock before.
-- name: lock_room
SELECT CAST(:room AS text) AS room
FROM pg_advisory_xact_lock(hashtext('mainspring.room ' || CAST(:room AS text)));
