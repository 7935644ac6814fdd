-- What lets others in. The digest is that of the secret, which is nowhere.
CREATE TABLE mainspring_tokens (
    id           TEXT PRIMARY KEY,
    digest       TEXT NOT NULL,
    name         TEXT NOT NULL,
    grants       TEXT NOT NULL,  -- roles by the names of teams, as JSON
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;

-- What was asked for by whom, each entry with a hash over itself and the hash of the one before it. Where the chain ends is
-- kept in one row, so that the last ones can't be removed unnoticed either.
CREATE TABLE mainspring_audit (
    seq     INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    team    TEXT,
    action  TEXT NOT NULL,
    target  TEXT,
    details TEXT NOT NULL,
    hash    TEXT NOT NULL
) STRICT;

CREATE INDEX mainspring_audit_team ON mainspring_audit (team, seq) WHERE team IS NOT NULL;

CREATE TABLE mainspring_audit_head (
    one     INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    entries INTEGER NOT NULL,
    hash    TEXT NOT NULL
) STRICT;

INSERT INTO mainspring_audit_head (entries, hash)
VALUES (0, '0000000000000000000000000000000000000000000000000000000000000000');

-- What a team may have, by its name, the default team's too. From `full_at` on it may have a whole burst together.
CREATE TABLE mainspring_teams (
    name          TEXT PRIMARY KEY,
    max_pending   INTEGER CHECK (max_pending >= 0),
    max_schedules INTEGER CHECK (max_schedules >= 0),
    gap           INTEGER CHECK (gap > 0),
    burst         INTEGER CHECK (burst > 0),
    full_at       INTEGER,
    created_at    INTEGER NOT NULL,
    CHECK ((gap IS NULL) = (burst IS NULL))
) STRICT;

-- Whose a queue is, and a schedule: NULL for what is everybody's, or the default team's.
ALTER TABLE mainspring_queues ADD COLUMN team TEXT;
ALTER TABLE mainspring_schedules ADD COLUMN team TEXT;
CREATE INDEX mainspring_schedules_team ON mainspring_schedules (team, id) WHERE team IS NOT NULL;
