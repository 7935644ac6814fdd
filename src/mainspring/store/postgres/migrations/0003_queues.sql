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
