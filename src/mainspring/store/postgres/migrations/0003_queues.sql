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
