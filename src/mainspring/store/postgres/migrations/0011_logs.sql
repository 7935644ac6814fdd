-- Whose record a line was, of Python's logging. NULL for what a job says by its context.
ALTER TABLE mainspring.logs ADD COLUMN logger text;

-- Lines come in the order of time, so that the smallest kind of index finds those of an hour among those of a day. An
-- index of every line would be paid for by whoever logs.
CREATE INDEX logs_at ON mainspring.logs USING brin (at) WITH (pages_per_range = 16);

-- Sessions that have ended: attempts know a worker by its session alone, and outlive it.
CREATE TABLE mainspring.sessions_done (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL
);
