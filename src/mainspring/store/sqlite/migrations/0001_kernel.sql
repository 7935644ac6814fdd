-- Instants are microseconds since 1970, durations microseconds, ids text; lease_until alone is on the steady
-- clock of this machine's boot, so that a jump of the wall clock neither ends nor prolongs a lease.
CREATE TABLE mainspring_sessions (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    lease       INTEGER NOT NULL CHECK (lease > 0),
    lease_until INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    beat_at     INTEGER NOT NULL,
    queues      TEXT NOT NULL,
    tasks       TEXT NOT NULL
) STRICT;

-- Unfinished jobs only.
CREATE TABLE mainspring_jobs (
    id         TEXT PRIMARY KEY,
    task       TEXT NOT NULL,
    queue      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    priority   INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 100),
    rank       INTEGER NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('blocked', 'scheduled', 'ready', 'running', 'retrying', 'paused')),
    run_at     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    key        TEXT,
    attempt    INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    losses     INTEGER NOT NULL DEFAULT 0 CHECK (losses >= 0),
    fence      INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    session    TEXT,
    started_at INTEGER,
    wish       TEXT CHECK (wish IN ('cancel', 'pause')),
    reason     TEXT,
    error      TEXT,
    progress   TEXT,
    schedule   TEXT,
    tick       INTEGER,
    expires_at INTEGER,
    waits_for  TEXT,
    fair       TEXT,
    weight     INTEGER CHECK (weight > 0),
    workflow   TEXT,  -- the job of whose workflow it is a member
    links      TEXT,  -- its parents, as JSON, as they were when it was enqueued
    plan       TEXT,  -- of a workflow: what is to become of its members and their results, as JSON
    pending    INTEGER CHECK (pending >= 0),  -- how many parents, or members, it waits for
    awaited    INTEGER NOT NULL DEFAULT FALSE,  -- whether others may wait for its end
    signal     TEXT,  -- for which it waits
    team       TEXT,  -- whose it is; NULL for the default team
    notify     TEXT,  -- who is told of what becomes of it, as JSON
    trace      TEXT,  -- the trace of which its enqueue was part
    CHECK ((state = 'running') = (session IS NOT NULL)),
    CHECK ((state = 'running') = (started_at IS NOT NULL)),
    CHECK (state = 'running' OR plan IS NOT NULL OR wish IS NULL),
    CHECK (state = 'blocked' OR waits_for IS NULL),
    CHECK (state IN ('blocked', 'paused') OR signal IS NULL),
    CHECK ((fair IS NULL) = (weight IS NULL))
) STRICT;

CREATE INDEX mainspring_jobs_ready ON mainspring_jobs (queue, rank) WHERE state = 'ready';
CREATE INDEX mainspring_jobs_held_back ON mainspring_jobs (queue, rank) WHERE waits_for IS NOT NULL AND fair IS NOT NULL;
-- By these all are counted that wait for something else than a worker; of plain jobs there is no entry in it.
CREATE INDEX mainspring_jobs_aside ON mainspring_jobs (state, queue)
    WHERE state IN ('blocked', 'scheduled', 'retrying', 'paused');
-- One that waits for a signal is due when its patience is at an end.
CREATE INDEX mainspring_jobs_due ON mainspring_jobs (run_at)
    WHERE state IN ('scheduled', 'retrying') OR (state = 'blocked' AND signal IS NOT NULL);
CREATE INDEX mainspring_jobs_held ON mainspring_jobs (session) WHERE state = 'running';
CREATE UNIQUE INDEX mainspring_jobs_key ON mainspring_jobs (key) WHERE key IS NOT NULL;
CREATE INDEX mainspring_jobs_schedule ON mainspring_jobs (schedule) WHERE schedule IS NOT NULL;
CREATE INDEX mainspring_jobs_workflow ON mainspring_jobs (workflow) WHERE workflow IS NOT NULL;
CREATE INDEX mainspring_jobs_workflows ON mainspring_jobs (id) WHERE plan IS NOT NULL AND workflow IS NULL;
CREATE INDEX mainspring_jobs_team ON mainspring_jobs (team, id) WHERE team IS NOT NULL;
-- By this those of a team are counted; of the default one's, and of what runs, there is no entry in it.
CREATE INDEX mainspring_jobs_backlog ON mainspring_jobs (team, state, queue) WHERE team IS NOT NULL AND state <> 'running';
CREATE INDEX mainspring_jobs_waiting ON mainspring_jobs (waits_for, rank) WHERE waits_for IS NOT NULL;
CREATE INDEX mainspring_jobs_expiring ON mainspring_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state <> 'running';

-- Finished jobs.
CREATE TABLE mainspring_jobs_done (
    id          TEXT PRIMARY KEY,
    task        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    payload     TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled', 'expired')),
    run_at      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    key         TEXT,
    attempt     INTEGER NOT NULL,
    losses      INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    session     TEXT,
    started_at  INTEGER,
    reason      TEXT,
    error       TEXT,
    finished_at INTEGER NOT NULL,
    outcome     TEXT,
    result      TEXT,
    progress    TEXT,
    schedule    TEXT,
    tick        INTEGER,
    fingerprint TEXT,  -- of a failed job: which dead letters have one cause
    expires_at  INTEGER,
    fair        TEXT,
    weight      INTEGER,
    workflow    TEXT,
    links       TEXT,
    plan        TEXT,
    team        TEXT,
    notify      TEXT,
    details     TEXT,  -- what its last attempt says of itself, as JSON
    CHECK ((outcome IS NULL) = (started_at IS NULL)),
    CHECK ((outcome IS NULL) = (session IS NULL))
) STRICT;

-- Prune finds the oldest by it: SQLite has no partitions to drop.
CREATE INDEX mainspring_jobs_done_finished ON mainspring_jobs_done (finished_at);

CREATE INDEX mainspring_jobs_done_workflow ON mainspring_jobs_done (workflow, id) WHERE workflow IS NOT NULL;
CREATE INDEX mainspring_jobs_done_workflows ON mainspring_jobs_done (id) WHERE plan IS NOT NULL AND workflow IS NULL;
CREATE INDEX mainspring_jobs_done_team ON mainspring_jobs_done (team, id) WHERE team IS NOT NULL;

-- Those that did not succeed are looked for among many that did, which have no entry in it.
CREATE INDEX mainspring_jobs_done_ended ON mainspring_jobs_done (state, id) WHERE state <> 'succeeded';

-- Dead letters are few among many, and are grouped, listed and replayed by their cause. The index holds all that this
-- asks for, so that a hundred thousand are grouped without a look at a single row, which its traceback makes long. A
-- job that does not fail has no entry in it.
CREATE INDEX mainspring_jobs_done_dead ON mainspring_jobs_done (fingerprint, id, finished_at, queue, task, team, state)
    WHERE state = 'failed';

-- Attempts that did not end their job. The one that did is part of the row in mainspring_jobs_done.
CREATE TABLE mainspring_attempts (
    job_id      TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    session     TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    error       TEXT,
    details     TEXT,  -- what it says of itself, as JSON: an exit code, sizes
    PRIMARY KEY (job_id, fence)
) STRICT;

CREATE INDEX mainspring_attempts_finished ON mainspring_attempts (finished_at);

-- What attempts said.
CREATE TABLE mainspring_logs (
    job_id  TEXT NOT NULL,
    fence   INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job_id, fence, number)
) STRICT;

CREATE INDEX mainspring_logs_at ON mainspring_logs (at);
