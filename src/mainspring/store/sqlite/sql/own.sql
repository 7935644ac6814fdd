-- Queries that only this dialect needs.
-- name: version
SELECT count(*) AS prepared FROM sqlite_master WHERE type = 'table' AND name = 'mainspring_schema';

-- name: begin_schema
CREATE TABLE IF NOT EXISTS mainspring_schema (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- name: last_migration
SELECT max(version) FROM mainspring_schema;

-- name: record_migration
INSERT INTO mainspring_schema (version, name, applied_at) VALUES (:version, :name, :now);

-- An update that changes nothing would write nothing, and time nothing.
-- name: trial_commit
INSERT INTO mainspring_schema (version, name, applied_at) VALUES (0, 'doctor', :now);

DELETE FROM mainspring_schema WHERE version = 0;

-- name: scratch
CREATE TEMP TABLE mainspring_settled (place INTEGER, id TEXT, result TEXT, error TEXT, reason TEXT, fingerprint TEXT,
                                     details TEXT, awaited INTEGER);
