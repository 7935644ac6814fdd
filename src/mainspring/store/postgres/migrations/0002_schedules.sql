-- `definition` is what its author says, as JSON; the rest is where the schedule stands. Of the former, `depends` says
-- whether its ticks depend on its jobs, and `success_in` how soon one should succeed.
CREATE TABLE mainspring.schedules (
    id          text PRIMARY KEY,
    definition  text NOT NULL,
    origin      text NOT NULL CHECK (origin IN ('code', 'call')),
    paused      boolean NOT NULL DEFAULT false,
    tick_at     timestamptz,
    due_at      timestamptz,
    runs        bigint NOT NULL DEFAULT 0 CHECK (runs >= 0),
    buffered_at timestamptz,
    awaits      boolean NOT NULL DEFAULT false,
    ended_at    timestamptz,
    depends     boolean NOT NULL,
    success_in  interval,
    expected_by timestamptz,
    overdue     boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL,
    changed_at  timestamptz NOT NULL,
    paused_by   text,
    reason      text,
    paused_at   timestamptz,
    CHECK (NOT (paused AND due_at IS NOT NULL)),
    CHECK (buffered_at IS NULL OR awaits)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

CREATE INDEX schedules_due ON mainspring.schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_expected ON mainspring.schedules (expected_by) WHERE expected_by IS NOT NULL AND NOT overdue;

-- The flight recorder: what became of every tick. A row outlives the job and the schedule, so that no tick fires twice.
CREATE TABLE mainspring.ticks (
    schedule   text NOT NULL,
    at         timestamptz NOT NULL,
    until      timestamptz,
    count      integer,
    verdict    text NOT NULL CHECK (verdict IN ('fired', 'late', 'triggered', 'backfilled', 'buffered', 'skipped',
                                                'coalesced', 'missed')),
    reason     text,
    job_id     uuid,
    node       text NOT NULL,
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (schedule, at),
    CHECK ((job_id IS NOT NULL) = (verdict IN ('fired', 'late', 'triggered', 'backfilled')))
);

-- Prune finds the oldest by it. Rows lie in the order in which they were decided, so a summary of ranges will do.
CREATE INDEX ticks_decided ON mainspring.ticks USING brin (decided_at);
