-- One row for each key that a limit or a breaker has come to, with the numbers that the code gave to it last, or what has
-- become of the breaker. `release_at` is set while jobs wait: then somebody looks whether they may go on. From `full_at` on, if
-- nobody uses it, the row says no more than a new one would.
CREATE TABLE mainspring_limits (
    key         TEXT PRIMARY KEY,
    concurrency INTEGER CHECK (concurrency > 0),
    gap         INTEGER CHECK (gap > 0),
    burst       INTEGER CHECK (burst > 0),
    full_at     INTEGER,
    release_at  INTEGER,
    breaker     TEXT,
    CHECK ((concurrency IS NOT NULL) + (gap IS NOT NULL) + (breaker IS NOT NULL) = 1),
    CHECK ((gap IS NULL) = (burst IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX mainspring_limits_release ON mainspring_limits (release_at) WHERE release_at IS NOT NULL;

-- Who has a slot: a running job, from the moment it may start until it is settled by its worker or its reaper.
CREATE TABLE mainspring_slots (
    key    TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (job_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX mainspring_slots_key ON mainspring_slots (key);
