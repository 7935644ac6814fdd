-- What people would like to be told of. `definition` is what its author says, as JSON, of which `every` is a copy; `scope` is
-- the team whose jobs it looks at, by its name, and NULL where it looks at everybody's. The rest is how it stands: who looks
-- moves `look_at` on first, so that nobody else does, and what he decides is written only if nobody has decided since.
CREATE TABLE mainspring_alerts (
    id           TEXT PRIMARY KEY,
    scope        TEXT,
    definition   TEXT NOT NULL,
    every        INTEGER NOT NULL CHECK (every > 0),
    status       TEXT NOT NULL CHECK (status IN ('ok', 'pending', 'firing')),
    since        INTEGER NOT NULL,
    value        REAL,
    message      TEXT,
    look_at      INTEGER NOT NULL,
    evaluated_at INTEGER,
    evaluated_by TEXT,
    created_at   INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX mainspring_alerts_look ON mainspring_alerts (look_at);

-- What alerts look for, and seldom find: none of these has an entry while all goes well.
CREATE INDEX mainspring_jobs_done_failed ON mainspring_jobs_done (finished_at) WHERE state = 'failed';
CREATE INDEX mainspring_schedules_overdue ON mainspring_schedules (id) WHERE overdue;
CREATE INDEX mainspring_ticks_missed ON mainspring_ticks (decided_at) WHERE verdict = 'missed';

-- What everybody would like to know: logged where nobody is told. Whoever does not, or would rather be told, removes one or
-- defines it anew.
INSERT INTO mainspring_alerts (id, definition, every, status, since, look_at, created_at, changed_at)
SELECT column1, column2, 60000000, 'ok', now, 0, now, now
FROM (
    VALUES ('mainspring.dead', '{"rule":{"kind":"dead","above":0,"over":"PT3600S"},"every":"PT60S"}'),
           ('mainspring.lag', '{"rule":{"kind":"lag","above":"PT30S"},"every":"PT60S","hold":"PT60S"}'),
           ('mainspring.workers', '{"rule":{"kind":"missing_workers"},"every":"PT60S","hold":"PT300S"}')
) AS known, (SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER) AS now) AS clock;
