-- `definition` is what its author says, as JSON; the rest is where the schedule stands. Of the former, `depends` says
-- whether its ticks depend on its jobs, and `success_in` how soon one should succeed.
CREATE TABLE mainspring_schedules (
    id          TEXT PRIMARY KEY,
    definition  TEXT NOT NULL,
    origin      TEXT NOT NULL CHECK (origin IN ('code', 'call')),
    paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    tick_at     INTEGER,
    due_at      INTEGER,
    runs        INTEGER NOT NULL DEFAULT 0 CHECK (runs >= 0),
    buffered_at INTEGER,
    awaits      INTEGER NOT NULL DEFAULT 0 CHECK (awaits IN (0, 1)),
    ended_at    INTEGER,
    depends     INTEGER NOT NULL CHECK (depends IN (0, 1)),
    success_in  INTEGER,
    expected_by INTEGER,
    overdue     INTEGER NOT NULL DEFAULT 0 CHECK (overdue IN (0, 1)),
    created_at  INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    paused_by   TEXT,
    reason      TEXT,
    paused_at   INTEGER,
    CHECK (NOT (paused AND due_at IS NOT NULL)),
    CHECK (buffered_at IS NULL OR awaits)
) STRICT;

CREATE INDEX mainspring_schedules_due ON mainspring_schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX mainspring_schedules_expected ON mainspring_schedules (expected_by)
    WHERE expected_by IS NOT NULL AND NOT overdue;

-- The flight recorder: what became of every tick. A row outlives the job and the schedule, so that no tick fires twice.
-- Rows lie in the order in which they were decided, in which prune takes them: it needs no index.
CREATE TABLE mainspring_ticks (
    schedule   TEXT NOT NULL,
    at         INTEGER NOT NULL,
    until      INTEGER,
    count      INTEGER,
    verdict    TEXT NOT NULL CHECK (verdict IN ('fired', 'late', 'triggered', 'backfilled', 'buffered', 'skipped',
                                                'coalesced', 'missed')),
    reason     TEXT,
    job_id     TEXT,
    node       TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    PRIMARY KEY (schedule, at),
    CHECK ((job_id IS NOT NULL) = (verdict IN ('fired', 'late', 'triggered', 'backfilled')))
) STRICT;
