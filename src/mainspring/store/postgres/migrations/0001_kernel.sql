CREATE TABLE mainspring.sessions (
    id          uuid PRIMARY KEY,
    name        text NOT NULL,
    lease       interval NOT NULL CHECK (lease > interval '0'),
    lease_until timestamptz NOT NULL,
    started_at  timestamptz NOT NULL,
    beat_at     timestamptz NOT NULL,
    queues      text NOT NULL,
    tasks       text NOT NULL
) WITH (fillfactor = 50);  -- beats touch no index, so with room on the page they are HOT updates

-- Unfinished jobs only. Every row is rewritten by each step, so vacuum must follow closely: by number of dead
-- rows, not by share of the table.
CREATE TABLE mainspring.jobs (
    id         uuid PRIMARY KEY,
    task       text NOT NULL,
    queue      text NOT NULL,
    payload    text NOT NULL,
    priority   smallint NOT NULL CHECK (priority BETWEEN 0 AND 100),
    rank       bigint NOT NULL,
    state      text NOT NULL CHECK (state IN ('blocked', 'scheduled', 'ready', 'running', 'retrying', 'paused')),
    run_at     timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    key        text,
    attempt    integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    losses     integer NOT NULL DEFAULT 0 CHECK (losses >= 0),
    fence      bigint NOT NULL DEFAULT 0 CHECK (fence >= 0),
    session    uuid,
    started_at timestamptz,
    wish       text CHECK (wish IN ('cancel', 'pause')),
    reason     text,
    error      text,
    progress   text,
    schedule   text,
    tick       timestamptz,
    expires_at timestamptz,
    waits_for  text,
    fair       text,
    weight     smallint CHECK (weight > 0),
    workflow   uuid,  -- the job of whose workflow it is a member
    links      text,  -- its parents, as JSON, as they were when it was enqueued
    plan       text,  -- of a workflow: what is to become of its members and their results, as JSON
    pending    integer CHECK (pending >= 0),  -- how many parents, or members, it waits for
    awaited    boolean NOT NULL DEFAULT false,  -- whether others may wait for its end
    signal     text,  -- for which it waits
    team       text,  -- whose it is; NULL for the default team
    notify     text,  -- who is told of what becomes of it, as JSON
    trace      text,  -- the trace of which its enqueue was part
    CHECK ((state = 'running') = (session IS NOT NULL)),
    CHECK ((state = 'running') = (started_at IS NOT NULL)),
    CHECK (state = 'running' OR plan IS NOT NULL OR wish IS NULL),
    CHECK (state = 'blocked' OR waits_for IS NULL),
    CHECK (state IN ('blocked', 'paused') OR signal IS NULL),
    CHECK ((fair IS NULL) = (weight IS NULL))
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- Those of equal rank go by age: where turns are taken, many are equal, and old ones must not be overtaken for ever.
CREATE INDEX jobs_ready ON mainspring.jobs (queue, rank, id) WHERE state = 'ready';
CREATE INDEX jobs_held_back ON mainspring.jobs (queue, rank) WHERE waits_for IS NOT NULL AND fair IS NOT NULL;
-- By these all are counted that wait for something else than a worker; of plain jobs there is no entry in it.
-- Of no use to whoever asks for a state, but those who ask by this condition to the letter: it would else be taken beside
-- the index of due times, and all that are due sorted.
CREATE INDEX jobs_aside ON mainspring.jobs (state, queue) WHERE state IN ('blocked', 'scheduled', 'retrying', 'paused') IS NOT FALSE;
-- One that waits for a signal is due when its patience is at an end.
CREATE INDEX jobs_due ON mainspring.jobs (run_at)
    WHERE state IN ('scheduled', 'retrying') OR (state = 'blocked' AND signal IS NOT NULL);
CREATE INDEX jobs_held ON mainspring.jobs (session) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_key ON mainspring.jobs (key) WHERE key IS NOT NULL;
CREATE INDEX jobs_schedule ON mainspring.jobs (schedule) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_workflow ON mainspring.jobs (workflow) WHERE workflow IS NOT NULL;
CREATE INDEX jobs_workflows ON mainspring.jobs (id) WHERE plan IS NOT NULL AND workflow IS NULL;
CREATE INDEX jobs_team ON mainspring.jobs (team, id) WHERE team IS NOT NULL;
-- By this those of a team are counted; of the default one's, and of what runs, there is no entry in it.
CREATE INDEX jobs_backlog ON mainspring.jobs (team, state, queue) WHERE team IS NOT NULL AND state <> 'running';
CREATE INDEX jobs_waiting ON mainspring.jobs (waits_for, rank, id) WHERE waits_for IS NOT NULL;
CREATE INDEX jobs_expiring ON mainspring.jobs (expires_at) WHERE expires_at IS NOT NULL AND state <> 'running';

-- Finished jobs, one partition a day of filing: retention drops a partition instead of deleting rows. That is the day of
-- finishing, until prune files a member of a workflow anew that is to be kept for as long as its workflow.
CREATE TABLE mainspring.jobs_done (
    id          uuid NOT NULL,
    task        text NOT NULL,
    queue       text NOT NULL,
    payload     text NOT NULL,
    priority    smallint NOT NULL,
    state       text NOT NULL CHECK (state IN ('succeeded', 'failed', 'cancelled', 'expired')),
    run_at      timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    key         text,
    attempt     integer NOT NULL,
    losses      integer NOT NULL,
    fence       bigint NOT NULL,
    session     uuid,
    started_at  timestamptz,
    reason      text,
    error       text,
    finished_at timestamptz NOT NULL,
    outcome     text,
    result      text,
    progress    text,
    schedule    text,
    tick        timestamptz,
    fingerprint text COLLATE "C",  -- of a failed job: which dead letters have one cause
    expires_at  timestamptz,
    fair        text,
    weight      smallint,
    workflow    uuid,
    links       text,
    plan        text,
    team        text,
    notify      text,
    details     text,  -- what its last attempt says of itself, as JSON
    filed_at    timestamptz NOT NULL,
    PRIMARY KEY (id, filed_at),
    CHECK ((outcome IS NULL) = (started_at IS NULL)),
    CHECK ((outcome IS NULL) = (session IS NULL))
) PARTITION BY RANGE (filed_at);

CREATE INDEX jobs_done_workflow ON mainspring.jobs_done (workflow, id) WHERE workflow IS NOT NULL;
CREATE INDEX jobs_done_workflows ON mainspring.jobs_done (id) WHERE plan IS NOT NULL AND workflow IS NULL;
CREATE INDEX jobs_done_team ON mainspring.jobs_done (team, id) WHERE team IS NOT NULL;

-- Who asks what has ended lately finds it by this. Rows lie in the order in which they were filed, so a summary of ranges
-- will do, which costs a job that ends next to nothing.
CREATE INDEX jobs_done_finished ON mainspring.jobs_done USING brin (finished_at)
    WITH (pages_per_range = 16, autosummarize = on);

-- Those that did not succeed are looked for among many that did, which have no entry in it.
CREATE INDEX jobs_done_ended ON mainspring.jobs_done (state, id) WHERE state <> 'succeeded';

-- Dead letters are few among many, and are grouped, listed and replayed by their cause. The index holds all that this
-- asks for, so that a hundred thousand are grouped without a look at a single row, which its traceback makes long. A
-- job that does not fail has no entry in it. Its fingerprint is a column and not an expression over the error, since
-- the server never answers a query from an index of expressions alone.
CREATE INDEX jobs_done_dead ON mainspring.jobs_done (fingerprint, id) INCLUDE (finished_at, queue, task, team)
    WHERE state = 'failed';

-- Attempts that did not end their job. The one that did is part of the row in jobs_done.
CREATE TABLE mainspring.attempts (
    job_id      uuid NOT NULL,
    fence       bigint NOT NULL,
    number      integer NOT NULL,
    session     uuid NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    outcome     text NOT NULL,
    error       text,
    details     text,  -- what it says of itself, as JSON: an exit code, sizes
    PRIMARY KEY (job_id, fence, finished_at)
) PARTITION BY RANGE (finished_at);

CREATE INDEX attempts_finished ON mainspring.attempts USING brin (finished_at)
    WITH (pages_per_range = 16, autosummarize = on);

-- What attempts said. The key has no room for uniqueness without the day: whoever writes looks first.
CREATE TABLE mainspring.logs (
    job_id  uuid NOT NULL,
    fence   bigint NOT NULL,
    number  integer NOT NULL,
    at      timestamptz NOT NULL,
    level   text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (job_id, fence, number, at)
) PARTITION BY RANGE (at);

-- Partitions for *days* days from *first* on. Made apart and attached, which lets other sessions go on writing.
CREATE FUNCTION mainspring.open_days(first date, days integer) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    day    date;
    parent text;
    child  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('mainspring.open_days'));
    FOR day IN SELECT generate_series(first, first + days - 1, interval '1 day') LOOP
        FOREACH parent IN ARRAY ARRAY['jobs_done', 'attempts', 'logs'] LOOP
            child := parent || to_char(day, '_YYYYMMDD');
            IF to_regclass(format('mainspring.%I', child)) IS NULL THEN
                EXECUTE format('CREATE TABLE mainspring.%I (LIKE mainspring.%I INCLUDING ALL)', child, parent);
                EXECUTE format('ALTER TABLE mainspring.%I ATTACH PARTITION mainspring.%I FOR VALUES FROM (%L) TO (%L)',
                               parent, child, to_char(day, 'YYYY-MM-DD"T"00:00"Z"'),
                               to_char(day + 1, 'YYYY-MM-DD"T"00:00"Z"'));
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Drop the oldest day of *parent* before *first*, and say how many rows went with it: NULL when there is none left.
-- One day a transaction, counted before anything is locked, and by estimate when that would take long.
CREATE FUNCTION mainspring.drop_day(parent text, first date) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    child    text;
    estimate real;
    dropped  bigint;
    refiled  bigint;
    cut      timestamptz := first AT TIME ZONE 'UTC';
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('mainspring.drop_day'));
    SELECT relname, reltuples INTO child, estimate
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = to_regclass(format('mainspring.%I', parent))
      AND right(relname, 8) < to_char(first, 'YYYYMMDD')
    ORDER BY relname
    LIMIT 1;
    IF child IS NULL THEN
        RETURN NULL;
    END IF;
    -- A member of a workflow that stays is filed with it, or, while that has not ended, under the first day that stays.
    -- Then its own members, if it has any, belong to one that stays. All days that go are looked at, not this one alone:
    -- whether a workflow of one of them stays may be for another workflow to say, of which it is a member.
    WHILE parent = 'jobs_done' AND refiled IS DISTINCT FROM 0 LOOP
        PERFORM mainspring.open_days(first, 1);
        UPDATE mainspring.jobs_done AS done
        SET filed_at = greatest(cut, kept.filed_at)
        FROM (
            -- Workflow by workflow, by their ids: a join would read all that stays.
            SELECT going.workflow, root.filed_at
            FROM (
                SELECT DISTINCT workflow FROM mainspring.jobs_done WHERE filed_at < cut AND workflow IS NOT NULL
            ) AS going
            CROSS JOIN LATERAL (
                (SELECT NULL AS filed_at FROM mainspring.jobs WHERE id = going.workflow OFFSET 0)
                UNION ALL
                (SELECT filed_at FROM mainspring.jobs_done WHERE id = going.workflow AND filed_at >= cut OFFSET 0)
            ) AS root
        ) AS kept
        WHERE done.filed_at < cut AND done.workflow = kept.workflow;
        GET DIAGNOSTICS refiled = ROW_COUNT;
    END LOOP;
    IF estimate < 1000000 THEN
        EXECUTE format('SELECT count(*) FROM mainspring.%I', child) INTO dropped;
    END IF;
    -- Dropping locks the parent; rather give up soon, and be called again, than queue all settles behind us.
    PERFORM set_config('lock_timeout', '200ms', true);
    EXECUTE format('DROP TABLE mainspring.%I', child);
    RETURN coalesce(dropped, estimate::bigint);
END $$;

-- Both act with the rights of the owner of the tables, so that the role that workers use needs no right to make or drop
-- tables; whoever may call them is told by a GRANT. Left out of search_path, pg_temp would come first in it, and a
-- caller's own type named text would be used with the owner's rights.
REVOKE ALL ON FUNCTION mainspring.open_days(date, integer), mainspring.drop_day(text, date) FROM PUBLIC;
