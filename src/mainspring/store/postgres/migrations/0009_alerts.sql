-- What people would like to be told of. `definition` is what its author says, as JSON, of which `every` is a copy; `scope` is
-- the team whose jobs it looks at, by its name, and NULL where it looks at everybody's. The rest is how it stands: who looks
-- moves `look_at` on first, so that nobody else does, and what he decides is written only if nobody has decided since.
CREATE TABLE mainspring.alerts (
    id           text PRIMARY KEY,
    scope        text,
    definition   text NOT NULL,
    every        interval NOT NULL CHECK (every > interval '0'),
    status       text NOT NULL CHECK (status IN ('ok', 'pending', 'firing')),
    since        timestamptz NOT NULL,
    value        double precision,
    message      text,
    look_at      timestamptz NOT NULL,
    evaluated_at timestamptz,
    evaluated_by text,
    created_at   timestamptz NOT NULL,
    changed_at   timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX alerts_look ON mainspring.alerts (look_at);

-- What alerts look for, and seldom find: none of these has an entry while all goes well.
CREATE INDEX jobs_done_failed ON mainspring.jobs_done (finished_at) WHERE state = 'failed';
CREATE INDEX schedules_overdue ON mainspring.schedules (id) WHERE overdue;
CREATE INDEX ticks_missed ON mainspring.ticks (decided_at) WHERE verdict = 'missed';

-- What everybody would like to know: logged where nobody is told. Whoever does not, or would rather be told, removes one or
-- defines it anew.
INSERT INTO mainspring.alerts (id, definition, every, status, since, look_at, created_at, changed_at)
SELECT id, definition, interval '1 minute', 'ok', now, timestamptz 'epoch', now, now
FROM (
    VALUES ('mainspring.dead', '{"rule":{"kind":"dead","above":0,"over":"PT3600S"},"every":"PT60S"}'),
           ('mainspring.lag', '{"rule":{"kind":"lag","above":"PT30S"},"every":"PT60S","hold":"PT60S"}'),
           ('mainspring.workers', '{"rule":{"kind":"missing_workers"},"every":"PT60S","hold":"PT300S"}')
) AS known (id, definition), (SELECT clock_timestamp() AS now) AS clock;
