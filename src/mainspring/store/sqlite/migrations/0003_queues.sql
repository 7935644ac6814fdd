-- What is paused, fleet-wide: every claim looks here. Few rows, and seldom any.
CREATE TABLE mainspring_pauses (
    kind      TEXT NOT NULL CHECK (kind IN ('queue', 'task')),
    name      TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    reason    TEXT,
    paused_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

-- What is said about queues; one that has no row has no ageing. `changes` counts changes of it, and `ranked` says by which
-- of them all jobs of the queue are ranked; `was` is what came before the last.
CREATE TABLE mainspring_queues (
    name    TEXT PRIMARY KEY,
    ageing  INTEGER CHECK (ageing > 0),
    was     INTEGER,
    changes INTEGER NOT NULL DEFAULT 1,
    ranked  INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Jobs with a fair key stand in lines, one for each key, and take turns. `next` is the turn of whoever joins the line next,
-- and `cost` is by how much the last who joined have moved that on. `reached` is the last turn that somebody claimed.
CREATE TABLE mainspring_lines (
    queue    TEXT NOT NULL,
    priority INTEGER NOT NULL,
    task     TEXT NOT NULL,
    fair     TEXT NOT NULL,
    next     INTEGER NOT NULL,
    cost     INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, task, fair)
) STRICT, WITHOUT ROWID;

CREATE TABLE mainspring_turns (
    queue    TEXT NOT NULL,
    priority INTEGER NOT NULL,
    task     TEXT NOT NULL,
    reached  INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, task)
) STRICT, WITHOUT ROWID;

-- What became of jobs, and what waited, in each span of time (in seconds) that began at `since`, by the name of the team whose
-- the jobs were. Workers add what they have settled, and one node a minute puts in how many were ready and for how long the
-- oldest was: the most that was seen. Old ones are pruned by that node, so there are a few hundred rows for each queue.
CREATE TABLE mainspring_samples (
    span      INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    team      TEXT NOT NULL,
    queue     TEXT NOT NULL,
    succeeded INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    retried   INTEGER NOT NULL DEFAULT 0,
    ready     INTEGER,
    oldest_us INTEGER,
    PRIMARY KEY (span, since, team, queue)
) STRICT, WITHOUT ROWID;

-- How many of the jobs that were settled had waited for about as long until they started: up to which of the bounds of a
-- worker's histogram, counted from 0.
CREATE TABLE mainspring_waits (
    span  INTEGER NOT NULL,
    since INTEGER NOT NULL,
    team  TEXT NOT NULL,
    queue TEXT NOT NULL,
    bound INTEGER NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (span, since, team, queue, bound)
) STRICT, WITHOUT ROWID;

-- When somebody looked: who writes the minute first does, and says when he is done, so that what was not seen is told from
-- what was not there.
CREATE TABLE mainspring_looks (
    span  INTEGER NOT NULL,
    since INTEGER NOT NULL,
    done  INTEGER NOT NULL,
    upto  TEXT,  -- the last queue that was looked at by itself; NULL when all were
    PRIMARY KEY (span, since)
) STRICT, WITHOUT ROWID;
