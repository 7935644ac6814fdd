-- What is paused, fleet-wide: every claim looks here. Few rows, and seldom any.
CREATE TABLE mainspring_pauses (
    kind      TEXT NOT NULL CHECK (kind IN ('queue', 'task')),
    name      TEXT NOT NULL,
    paused_by TEXT NOT NULL,
    reason    TEXT,
    paused_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;
