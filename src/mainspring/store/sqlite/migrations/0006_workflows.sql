-- Which child waits for which parent, until that has ended: what a settle looks at to find whom it sets free. Who the parents
-- of a job are, and were, its own row says.
CREATE TABLE mainspring_edges (
    parent    TEXT NOT NULL,
    child     TEXT NOT NULL,
    if_failed TEXT NOT NULL CHECK (if_failed IN ('cancel', 'run', 'wait')),
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

-- What is left to be done about the ends of jobs, in transactions of their own. Seldom any rows.
CREATE TABLE mainspring_follow_ups (
    job_id TEXT NOT NULL,
    what   TEXT NOT NULL CHECK (what IN ('link', 'tell', 'finish')),
    PRIMARY KEY (job_id, what)
) STRICT, WITHOUT ROWID;

-- What a durable job has done: the result of each of its steps; of a sleep, or of a wait for a signal, until when.
CREATE TABLE mainspring_steps (
    job_id TEXT NOT NULL,
    name   TEXT NOT NULL,
    until  INTEGER,
    result TEXT,
    at     INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
) STRICT;

-- What was said to a job, whether it waits for it already or not.
CREATE TABLE mainspring_signals (
    job_id TEXT NOT NULL,
    name   TEXT NOT NULL,
    id     TEXT NOT NULL,
    value  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    taken  INTEGER NOT NULL DEFAULT FALSE,
    PRIMARY KEY (job_id, name, id)
) STRICT;
