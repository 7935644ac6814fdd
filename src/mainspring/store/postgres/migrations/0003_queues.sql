-- What is paused, fleet-wide: every claim looks here. Few rows, and seldom any.
CREATE TABLE mainspring.pauses (
    kind      text NOT NULL CHECK (kind IN ('queue', 'task')),
    name      text NOT NULL,
    paused_by text NOT NULL,
    reason    text,
    paused_at timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);
