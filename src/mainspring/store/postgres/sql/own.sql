-- Queries that only this dialect needs.
-- name: version
SELECT CASE WHEN to_regclass('mainspring.schema') IS NULL THEN 0 ELSE 1 END AS prepared;

-- name: has_room
SELECT to_regnamespace('mainspring') IS NOT NULL AS room;

-- name: make_room
CREATE SCHEMA IF NOT EXISTS mainspring;

-- name: begin_schema
CREATE TABLE IF NOT EXISTS mainspring.schema (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: last_migration
SELECT max(version) FROM mainspring.schema;

-- name: tables
SELECT count(*)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm') AND nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'mainspring');

-- name: record_migration
INSERT INTO mainspring.schema (version, name) VALUES (:version, :name);

-- name: lock_migrations
SELECT pg_advisory_xact_lock(hashtext('mainspring.migrate'));

-- name: open_days
WITH {clock}
SELECT mainspring.open_days(CAST(now AT TIME ZONE 'UTC' AS date), 8)
FROM clock;

-- name: transaction_id
SELECT CAST(pg_current_xact_id() AS text);

-- The moment at which a server began tells it from every other.
-- name: identity
SELECT CAST(current_database() AS text) AS database,
       CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS bigint) AS began,
       coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket') AS location;

-- name: notify
SELECT pg_notify('mainspring', topic)
FROM json_array_elements_text(CAST(:topics AS json)) AS topic;

-- Which rights are lacking is asked of all that is in the schema, so that none that a later migration makes is
-- forgotten. A partition is reached by its parent, and `schema` is written by whoever migrates.
-- name: probe
SELECT version() AS version,
       coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket')
           || ', database ' || current_database() AS location,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('synchronous_standby_names') AS standbys,
       current_setting('transaction_read_only') = 'on' AS read_only,
       (
           SELECT string_agg(name, ', ' ORDER BY name)
           FROM (
               SELECT DISTINCT CAST(relname AS text) AS name
               FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
               WHERE relnamespace = to_regnamespace('mainspring') AND relkind IN ('r', 'p') AND NOT relispartition
                 AND relname NOT IN ('schema', 'tokens', 'audit', 'audit_head') AND NOT has_table_privilege(pg_class.oid, privilege)
               UNION ALL
               SELECT proname || '()'
               FROM pg_proc
               WHERE pronamespace = to_regnamespace('mainspring') AND NOT has_function_privilege(oid, 'EXECUTE')
           ) AS forbidden
       ) AS lacking,
       clock_timestamp() AS clock_at;

-- name: trial_commit
SELECT pg_logical_emit_message(true, 'mainspring.doctor', '');
