-- What teams keep secret, each value sealed for its team and name with the key that `key_id` names.
CREATE TABLE mainspring.secrets (
    team       text NOT NULL,
    name       text NOT NULL,
    sealed     text NOT NULL,
    key_id     text NOT NULL,
    created_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    PRIMARY KEY (team, name)
);
