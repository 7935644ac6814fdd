-- name: add_counts
INSERT INTO mainspring_samples AS sample (span, since, team, queue, succeeded, failed, retried)
SELECT span, {span_start}, counted.value ->> 0, counted.value ->> 1, counted.value ->> 2, counted.value ->> 3,
       counted.value ->> 4
FROM (SELECT :now AS at, value AS span FROM json_each(:spans)) AS spans, json_each(:counts) AS counted
WHERE TRUE
ON CONFLICT (span, since, team, queue) DO UPDATE
SET succeeded = sample.succeeded + excluded.succeeded, failed = sample.failed + excluded.failed,
    retried = sample.retried + excluded.retried;

-- name: add_waits
INSERT INTO mainspring_waits AS wait (span, since, team, queue, bound, jobs)
SELECT span, {span_start}, waited.value ->> 0, waited.value ->> 1, waited.value ->> 2, waited.value ->> 3
FROM (SELECT :now AS at, value AS span FROM json_each(:spans)) AS spans, json_each(:waits) AS waited
WHERE TRUE
ON CONFLICT (span, since, team, queue, bound) DO UPDATE SET jobs = wait.jobs + excluded.jobs;

-- name: take_look
INSERT INTO mainspring_looks (span, since, done)
SELECT span, {span_start}, FALSE
FROM (SELECT :now AS at, :span AS span) AS spans
WHERE TRUE
ON CONFLICT (span, since) DO NOTHING
RETURNING since;

-- Of more than are looked at the oldest may be missed, where urgent ones go before it.
-- name: ready_by_team
SELECT coalesce(team, 'default') AS team, count(*) AS ready, max(:now - run_at) AS waited_us
FROM (
    SELECT team, run_at
    FROM mainspring_jobs
    WHERE state = 'ready' AND queue = :queue
    ORDER BY rank
    LIMIT :look
) AS first
GROUP BY 1;

-- The same of all queues together that come after one.
-- name: ready_beyond
SELECT coalesce(team, 'default') AS team, count(*) AS ready, max(:now - run_at) AS waited_us
FROM (
    SELECT team, run_at
    FROM mainspring_jobs
    WHERE state = 'ready' AND queue > :queue
    ORDER BY queue, rank
    LIMIT :look
) AS first
GROUP BY 1;

-- name: put_levels
INSERT INTO mainspring_samples AS sample (span, since, team, queue, ready, oldest_us)
SELECT span, {span_start}, level.value ->> 0, level.value ->> 1, level.value ->> 2, level.value ->> 3
FROM (SELECT :at AS at, value AS span FROM json_each(:spans)) AS spans, json_each(:levels) AS level
WHERE TRUE
ON CONFLICT (span, since, team, queue) DO UPDATE
SET ready = max(coalesce(sample.ready, 0), excluded.ready),
    oldest_us = max(coalesce(sample.oldest_us, 0), excluded.oldest_us);

-- name: put_looks
INSERT INTO mainspring_looks AS look (span, since, done, upto)
SELECT span, {span_start}, TRUE, :upto
FROM (SELECT :at AS at, value AS span FROM json_each(:spans)) AS spans
WHERE TRUE
ON CONFLICT (span, since) DO UPDATE
SET done = TRUE, upto = CASE WHEN look.done THEN max(look.upto, excluded.upto) ELSE excluded.upto END;

-- What lies further ahead than anything is kept is from before the clock was set back.
-- name: prune_samples
DELETE FROM mainspring_samples
WHERE (span, since, team, queue) IN (
    SELECT span, since, team, queue
    FROM mainspring_samples
    WHERE span = :span AND (since < :now - :age OR since > :now + :age)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: prune_waits
DELETE FROM mainspring_waits
WHERE (span, since, team, queue, bound) IN (
    SELECT span, since, team, queue, bound
    FROM mainspring_waits
    WHERE span = :span AND (since < :now - :age OR since > :now + :age)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: prune_looks
DELETE FROM mainspring_looks
WHERE (span, since) IN (
    SELECT span, since
    FROM mainspring_looks
    WHERE span = :span AND (since < :now - :age OR since > :now + :age)
    LIMIT :limit
);

SELECT changes() AS pruned
WHERE changes() > 0;

-- name: samples
SELECT since, sum(succeeded) AS succeeded, sum(failed) AS failed, sum(retried) AS retried, sum(ready) AS ready,
       max(oldest_us) AS oldest_us
FROM mainspring_samples
WHERE span = :span AND since >= :first AND (:team IS NULL OR team = :team) AND (:queue IS NULL OR queue = :queue)
GROUP BY since;

-- name: waits
SELECT since, bound, sum(jobs) AS jobs
FROM mainspring_waits
WHERE span = :span AND since >= :first AND (:team IS NULL OR team = :team) AND (:queue IS NULL OR queue = :queue)
GROUP BY since, bound;

-- name: looks
SELECT since
FROM mainspring_looks
WHERE span = :span AND since >= :first AND done AND (:queue IS NULL OR upto IS NULL OR :queue <= upto);
