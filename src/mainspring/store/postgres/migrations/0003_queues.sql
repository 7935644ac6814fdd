-- What is paused, fleet-wide: every claim looks here. Few rows, and seldom any.
CREATE TABLE mainspring.pauses (
    kind      text NOT NULL CHECK (kind IN ('queue', 'task')),
    name      text NOT NULL,
    paused_by text NOT NULL,
    reason    text,
    paused_at timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);

-- What is said about queues; one that has no row has no ageing. `changes` counts changes of it, and `ranked` says by which
-- of them all jobs of the queue are ranked; `was` is what came before the last.
CREATE TABLE mainspring.queues (
    name    text PRIMARY KEY,
    ageing  interval CHECK (ageing > interval '0'),
    was     interval,
    changes bigint NOT NULL DEFAULT 1,
    ranked  bigint NOT NULL DEFAULT 0
);

-- Jobs with a fair key stand in lines, one for each key, and take turns. `next` is the turn of whoever joins the line next,
-- and `cost` is by how much the last who joined have moved that on. `reached` is the last turn that somebody claimed.
CREATE TABLE mainspring.lines (
    queue    text NOT NULL,
    priority smallint NOT NULL,
    task     text NOT NULL,
    fair     text NOT NULL,
    next     bigint NOT NULL,
    cost     bigint NOT NULL,
    PRIMARY KEY (queue, priority, task, fair)
) WITH (fillfactor = 50);

CREATE TABLE mainspring.turns (
    queue    text NOT NULL,
    priority smallint NOT NULL,
    task     text NOT NULL,
    reached  bigint NOT NULL,
    PRIMARY KEY (queue, priority, task)
) WITH (fillfactor = 50);

-- What became of jobs, and what waited, in each span of time (in seconds) that began at `since`, by the name of the team whose
-- the jobs were. Workers add what they have settled, and one node a minute puts in how many were ready and for how long the
-- oldest was: the most that was seen. Old ones are pruned by that node, so there are a few hundred rows for each queue.
CREATE TABLE mainspring.samples (
    span      integer NOT NULL,
    since     timestamptz NOT NULL,
    team      text NOT NULL,
    queue     text NOT NULL,
    succeeded bigint NOT NULL DEFAULT 0,
    failed    bigint NOT NULL DEFAULT 0,
    retried   bigint NOT NULL DEFAULT 0,
    ready     bigint,
    oldest_us bigint,
    PRIMARY KEY (span, since, team, queue)
) WITH (fillfactor = 50);

-- How many of the jobs that were settled had waited for about as long until they started: up to which of the bounds of a
-- worker's histogram, counted from 0.
CREATE TABLE mainspring.waits (
    span  integer NOT NULL,
    since timestamptz NOT NULL,
    team  text NOT NULL,
    queue text NOT NULL,
    bound smallint NOT NULL,
    jobs  bigint NOT NULL,
    PRIMARY KEY (span, since, team, queue, bound)
) WITH (fillfactor = 50);

-- When somebody looked: who writes the minute first does, and says when he is done, so that what was not seen is told from
-- what was not there.
CREATE TABLE mainspring.looks (
    span  integer NOT NULL,
    since timestamptz NOT NULL,
    done  boolean NOT NULL,
    upto  text,  -- the last queue that was looked at by itself; NULL when all were
    PRIMARY KEY (span, since)
);
