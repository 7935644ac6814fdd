-- What teams keep secret, each value sealed for its team and name with the key that `key_id` names.
CREATE TABLE mainspring_secrets (
    team       TEXT NOT NULL,
    name       TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    key_id     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (team, name)
) STRICT, WITHOUT ROWID;
