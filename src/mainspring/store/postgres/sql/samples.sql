-- In the order of the documents, which is the same for all who add, so that no two wait for each other.
-- name: add_counts
WITH {clock},
added AS MATERIALIZED (
    SELECT fields ->> 0 AS team, fields ->> 1 AS queue, CAST(fields ->> 2 AS bigint) AS succeeded,
           CAST(fields ->> 3 AS bigint) AS failed, CAST(fields ->> 4 AS bigint) AS retried, position
    FROM jsonb_array_elements(CAST(:counts AS jsonb)) WITH ORDINALITY AS counted (fields, position)
),
spans AS (
    SELECT now AS at, CAST(value AS integer) AS span
    FROM clock, jsonb_array_elements(CAST(:spans AS jsonb)) AS given (value)
)
INSERT INTO mainspring.samples AS sample (span, since, team, queue, succeeded, failed, retried)
SELECT span, {span_start}, team, queue, succeeded, failed, retried
FROM spans, added
ORDER BY span, position
ON CONFLICT (span, since, team, queue) DO UPDATE
SET succeeded = sample.succeeded + excluded.succeeded, failed = sample.failed + excluded.failed,
    retried = sample.retried + excluded.retried;

-- name: add_waits
WITH {clock},
added AS MATERIALIZED (
    SELECT fields ->> 0 AS team, fields ->> 1 AS queue, CAST(fields ->> 2 AS smallint) AS bound,
           CAST(fields ->> 3 AS bigint) AS jobs, position
    FROM jsonb_array_elements(CAST(:waits AS jsonb)) WITH ORDINALITY AS waited (fields, position)
),
spans AS (
    SELECT now AS at, CAST(value AS integer) AS span
    FROM clock, jsonb_array_elements(CAST(:spans AS jsonb)) AS given (value)
)
INSERT INTO mainspring.waits AS wait (span, since, team, queue, bound, jobs)
SELECT span, {span_start}, team, queue, bound, jobs
FROM spans, added
ORDER BY span, position
ON CONFLICT (span, since, team, queue, bound) DO UPDATE SET jobs = wait.jobs + excluded.jobs;

-- name: take_look
WITH {clock},
spans AS (
    SELECT now AS at, CAST(:span AS integer) AS span
    FROM clock
)
INSERT INTO mainspring.looks (span, since, done)
SELECT span, {span_start}, false
FROM spans
ON CONFLICT (span, since) DO NOTHING
RETURNING since;

-- Of more than are looked at the oldest may be missed, where urgent ones go before it.
-- name: ready_by_team
WITH {clock}
SELECT coalesce(team, 'default') AS team, count(*) AS ready,
       CAST(max(extract(epoch FROM now - run_at)) * 1000000 AS bigint) AS waited_us
FROM clock, (
    SELECT team, run_at
    FROM mainspring.jobs
    WHERE state = 'ready' AND queue = :queue
    ORDER BY rank
    LIMIT (SELECT CAST(:look AS bigint))
) AS first
GROUP BY 1;

-- The same of all queues together that come after one.
-- name: ready_beyond
WITH {clock}
SELECT coalesce(team, 'default') AS team, count(*) AS ready,
       CAST(max(extract(epoch FROM now - run_at)) * 1000000 AS bigint) AS waited_us
FROM clock, (
    SELECT team, run_at
    FROM mainspring.jobs
    WHERE state = 'ready' AND queue > :queue
    ORDER BY queue, rank
    LIMIT (SELECT CAST(:look AS bigint))
) AS first
GROUP BY 1;

-- name: put_levels
WITH seen AS MATERIALIZED (
    SELECT fields ->> 0 AS team, fields ->> 1 AS queue, CAST(fields ->> 2 AS bigint) AS ready,
           CAST(fields ->> 3 AS bigint) AS oldest_us, position
    FROM jsonb_array_elements(CAST(:levels AS jsonb)) WITH ORDINALITY AS level (fields, position)
),
spans AS (
    SELECT CAST(:at AS timestamptz) AS at, CAST(value AS integer) AS span
    FROM jsonb_array_elements(CAST(:spans AS jsonb)) AS given (value)
)
INSERT INTO mainspring.samples AS sample (span, since, team, queue, ready, oldest_us)
SELECT span, {span_start}, team, queue, ready, oldest_us
FROM spans, seen
ORDER BY span, position
ON CONFLICT (span, since, team, queue) DO UPDATE
SET ready = greatest(sample.ready, excluded.ready), oldest_us = greatest(sample.oldest_us, excluded.oldest_us);

-- name: put_looks
WITH spans AS (
    SELECT CAST(:at AS timestamptz) AS at, CAST(value AS integer) AS span
    FROM jsonb_array_elements(CAST(:spans AS jsonb)) AS given (value)
)
INSERT INTO mainspring.looks AS look (span, since, done, upto)
SELECT span, {span_start}, true, CAST(:upto AS text)
FROM spans
ON CONFLICT (span, since) DO UPDATE
SET done = true,
    upto = CASE WHEN NOT look.done THEN excluded.upto
                WHEN look.upto IS NOT NULL AND excluded.upto IS NOT NULL THEN greatest(look.upto, excluded.upto) END;

-- What lies further ahead than anything is kept is from before the clock was set back. Differs from SQLite in that the
-- first and the last span are asked for, in the order of the index: of all that is old, a planner who takes it for little
-- would read all each time.
-- name: prune_samples
WITH {clock},
old AS MATERIALIZED (
    (
        SELECT ctid
        FROM mainspring.samples
        WHERE span = :span AND since = (SELECT min(since) FROM mainspring.samples WHERE span = :span)
          AND since < (SELECT now - CAST(:age AS interval) FROM clock)
        ORDER BY team, queue
        LIMIT :limit
    )
    UNION ALL
    (
        SELECT ctid
        FROM mainspring.samples
        WHERE span = :span AND since = (SELECT max(since) FROM mainspring.samples WHERE span = :span)
          AND since > (SELECT now + CAST(:age AS interval) FROM clock)
        ORDER BY team, queue
        LIMIT :limit
    )
),
gone AS (
    DELETE FROM mainspring.samples
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
    RETURNING since
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;

-- name: prune_waits
WITH {clock},
old AS MATERIALIZED (
    (
        SELECT ctid
        FROM mainspring.waits
        WHERE span = :span AND since = (SELECT min(since) FROM mainspring.waits WHERE span = :span)
          AND since < (SELECT now - CAST(:age AS interval) FROM clock)
        ORDER BY team, queue
        LIMIT :limit
    )
    UNION ALL
    (
        SELECT ctid
        FROM mainspring.waits
        WHERE span = :span AND since = (SELECT max(since) FROM mainspring.waits WHERE span = :span)
          AND since > (SELECT now + CAST(:age AS interval) FROM clock)
        ORDER BY team, queue
        LIMIT :limit
    )
),
gone AS (
    DELETE FROM mainspring.waits
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
    RETURNING since
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;

-- name: prune_looks
WITH {clock},
old AS MATERIALIZED (
    (
        SELECT ctid
        FROM mainspring.looks
        WHERE span = :span AND since = (SELECT min(since) FROM mainspring.looks WHERE span = :span)
          AND since < (SELECT now - CAST(:age AS interval) FROM clock)
        LIMIT :limit
    )
    UNION ALL
    (
        SELECT ctid
        FROM mainspring.looks
        WHERE span = :span AND since = (SELECT max(since) FROM mainspring.looks WHERE span = :span)
          AND since > (SELECT now + CAST(:age AS interval) FROM clock)
        LIMIT :limit
    )
),
gone AS (
    DELETE FROM mainspring.looks
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))
    RETURNING since
)
SELECT count(*) AS pruned
FROM gone
HAVING count(*) > 0;

-- name: samples
SELECT since, CAST(sum(succeeded) AS bigint) AS succeeded, CAST(sum(failed) AS bigint) AS failed,
       CAST(sum(retried) AS bigint) AS retried, CAST(sum(ready) AS bigint) AS ready, max(oldest_us) AS oldest_us
FROM mainspring.samples
WHERE span = :span AND since >= :first AND (CAST(:team AS text) IS NULL OR team = :team)
  AND (CAST(:queue AS text) IS NULL OR queue = :queue)
GROUP BY since;

-- name: waits
SELECT since, bound, CAST(sum(jobs) AS bigint) AS jobs
FROM mainspring.waits
WHERE span = :span AND since >= :first AND (CAST(:team AS text) IS NULL OR team = :team)
  AND (CAST(:queue AS text) IS NULL OR queue = :queue)
GROUP BY since, bound;

-- name: looks
SELECT since
FROM mainspring.looks
WHERE span = :span AND since >= :first AND done
  AND (CAST(:queue AS text) IS NULL OR upto IS NULL OR :queue <= upto);
