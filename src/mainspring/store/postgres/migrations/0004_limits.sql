-- One row for each key that a limit or a breaker has come to, with the numbers that the code gave to it last, or what has
-- become of the breaker. Whoever lets jobs through, or gives their slots back, locks it first. `release_at` is set while jobs
-- wait: then somebody looks whether they may go on. From `full_at` on, if nobody uses it, the row says no more than a new one would.
CREATE TABLE mainspring.limits (
    key         text PRIMARY KEY,
    concurrency integer CHECK (concurrency > 0),
    gap         interval CHECK (gap > interval '0'),
    burst       integer CHECK (burst > 0),
    full_at     timestamptz,
    release_at  timestamptz,
    breaker     text,
    CHECK (num_nonnulls(concurrency, gap, breaker) = 1),
    CHECK ((gap IS NULL) = (burst IS NULL))
) WITH (fillfactor = 50);

CREATE INDEX limits_release ON mainspring.limits (release_at) WHERE release_at IS NOT NULL;

-- Who has a slot: a running job, from the moment it may start until it is settled by its worker or its reaper.
CREATE TABLE mainspring.slots (
    key    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (job_id, key)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX slots_key ON mainspring.slots (key);
