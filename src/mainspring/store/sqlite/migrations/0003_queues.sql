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
