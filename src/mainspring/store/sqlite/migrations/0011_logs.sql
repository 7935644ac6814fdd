-- Whose record a line was, of Python's logging. NULL for what a job says by its context.
ALTER TABLE mainspring_logs ADD COLUMN logger TEXT;

-- Sessions that have ended: attempts know a worker by its session alone, and outlive it.
CREATE TABLE mainspring_sessions_done (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL
) STRICT;
