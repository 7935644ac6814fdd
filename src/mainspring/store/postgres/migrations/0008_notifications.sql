-- Whom teams want to be told of what becomes of all their jobs. `channel` is JSON that no SQL looks into.
CREATE TABLE mainspring.notifications (
    team       text NOT NULL,
    id         text NOT NULL,
    channel    text NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (team, id)
);

-- Of which job or schedule whom was told that it is in trouble: its next success takes the row, and is a recovery.
CREATE TABLE mainspring.troubles (
    subject text NOT NULL,
    target  text NOT NULL,
    told_at timestamptz NOT NULL,
    PRIMARY KEY (subject, target)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Prune finds the oldest by it.
CREATE INDEX troubles_told ON mainspring.troubles (told_at);
