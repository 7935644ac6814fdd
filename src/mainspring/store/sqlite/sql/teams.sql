-- name: lock_team
SELECT {team}
FROM mainspring_teams
WHERE name = :team;

-- name: put_team
INSERT INTO mainspring_teams (name, max_pending, max_schedules, gap, burst, created_at)
VALUES (:team, :max_pending, :max_schedules, :gap, :burst, :now)
ON CONFLICT (name) DO UPDATE
SET max_pending = excluded.max_pending, max_schedules = excluded.max_schedules, gap = excluded.gap,
    burst = excluded.burst
RETURNING {team};

-- name: teams
SELECT {team}
FROM mainspring_teams
WHERE :team IS NULL OR name = :team
ORDER BY name;

-- name: remove_team
DELETE FROM mainspring_teams
WHERE name = :team
RETURNING name;

-- name: take_of_team
UPDATE mainspring_teams
SET full_at = {filling} + :jobs * gap
WHERE name = :team AND {filling} + :jobs * gap <= :now + burst * gap
RETURNING name;

-- name: bucket_of_team
SELECT :now AS now_at, gap, burst, full_at
FROM mainspring_teams
WHERE name = :team AND gap IS NOT NULL;

-- Or it would seem to be empty for as long as the clock was set back by.
-- name: mend_team
UPDATE mainspring_teams
SET full_at = {filling}
WHERE name = :team AND full_at > :now + burst * gap;

-- name: pending_of_team
SELECT count(*) AS pending
FROM (SELECT queue FROM mainspring_jobs WHERE team = :team LIMIT :looked) AS jobs
WHERE queue <> :left_out;

-- No index tells those apart that are the default team's, so that these cost nothing: of all jobs some are looked at.
-- name: pending_of_nobody
SELECT count(*) AS pending
FROM (SELECT team, queue FROM mainspring_jobs LIMIT :looked) AS jobs
WHERE team IS NULL AND queue <> :left_out;

-- name: schedules_of_team
SELECT count(*) AS schedules
FROM mainspring_schedules
WHERE coalesce(team, 'default') = :team;

-- Nobody else has a transaction that writes.
-- name: lock_room
SELECT :room AS room;
