-- Which child waits for which parent, until that has ended: what a settle looks at to find whom it sets free. Who the parents
-- of a job are, and were, its own row says.
CREATE TABLE mainspring.edges (
    parent    uuid NOT NULL,
    child     uuid NOT NULL,
    if_failed text NOT NULL CHECK (if_failed IN ('cancel', 'run', 'wait')),
    PRIMARY KEY (parent, child)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- What is left to be done about the ends of jobs, in transactions of their own. Seldom any rows.
CREATE TABLE mainspring.follow_ups (
    job_id uuid NOT NULL,
    what   text NOT NULL CHECK (what IN ('link', 'tell', 'finish')),
    PRIMARY KEY (job_id, what)
) WITH (fillfactor = 50);

-- What a durable job has done: the result of each of its steps; of a sleep, or of a wait for a signal, until when.
CREATE TABLE mainspring.steps (
    job_id uuid NOT NULL,
    name   text NOT NULL,
    until  timestamptz,
    result text,
    at     timestamptz NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- What was said to a job, whether it waits for it already or not.
CREATE TABLE mainspring.signals (
    job_id uuid NOT NULL,
    name   text NOT NULL,
    id     uuid NOT NULL,
    value  text NOT NULL,
    at     timestamptz NOT NULL,
    taken  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job_id, name, id)
);
