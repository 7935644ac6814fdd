-- What lets others in. The digest is that of the secret, which is nowhere.
CREATE TABLE mainspring.tokens (
    id           text PRIMARY KEY,
    digest       text NOT NULL,
    name         text NOT NULL,
    grants       text NOT NULL,  -- roles by the names of teams, as JSON
    created_at   timestamptz NOT NULL,
    created_by   text NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz
);

-- What was asked for by whom, each entry with a hash over itself and the hash of the one before it. Where the chain ends is
-- kept in one row, which whoever writes locks: so that the last ones can't be removed unnoticed either.
CREATE TABLE mainspring.audit (
    seq     bigint PRIMARY KEY,
    id      uuid NOT NULL UNIQUE,
    at      timestamptz NOT NULL,
    actor   text NOT NULL,
    team    text,
    action  text NOT NULL,
    target  text,
    details text NOT NULL,
    hash    text NOT NULL
);

CREATE INDEX audit_team ON mainspring.audit (team, seq) WHERE team IS NOT NULL;

CREATE TABLE mainspring.audit_head (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    entries bigint NOT NULL,
    hash    text NOT NULL
);

INSERT INTO mainspring.audit_head (entries, hash) VALUES (0, repeat('0', 64));

-- What a team may have, by its name, the default team's too. From `full_at` on it may have a whole burst together.
CREATE TABLE mainspring.teams (
    name          text PRIMARY KEY,
    max_pending   bigint CHECK (max_pending >= 0),
    max_schedules bigint CHECK (max_schedules >= 0),
    gap           interval CHECK (gap > interval '0'),
    burst         bigint CHECK (burst > 0),
    full_at       timestamptz,
    created_at    timestamptz NOT NULL,
    CHECK ((gap IS NULL) = (burst IS NULL))
) WITH (fillfactor = 50);

-- Whose a queue is, and a schedule: NULL for what is everybody's, or the default team's.
ALTER TABLE mainspring.queues ADD COLUMN team text;
ALTER TABLE mainspring.schedules ADD COLUMN team text;
CREATE INDEX schedules_team ON mainspring.schedules (team, id) WHERE team IS NOT NULL;
