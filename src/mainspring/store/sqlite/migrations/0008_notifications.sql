-- Whom teams want to be told of what becomes of all their jobs. `channel` is JSON that no SQL looks into.
CREATE TABLE mainspring_notifications (
    team       TEXT NOT NULL,
    id         TEXT NOT NULL,
    channel    TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (team, id)
) STRICT, WITHOUT ROWID;

-- Of which job or schedule whom was told that it is in trouble: its next success takes the row, and is a recovery.
CREATE TABLE mainspring_troubles (
    subject TEXT NOT NULL,
    target  TEXT NOT NULL,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (subject, target)
) STRICT, WITHOUT ROWID;

-- Prune finds the oldest by it.
CREATE INDEX mainspring_troubles_told ON mainspring_troubles (told_at);
