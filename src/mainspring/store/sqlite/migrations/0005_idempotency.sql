-- Which job stands for an idempotency key, and for how long past its finish. Whether it still does is judged when the
-- key is used again, so that a job that finishes need not know of it; prune looks at a row no sooner than `look_at`.
CREATE TABLE mainspring_idempotency (
    key     TEXT PRIMARY KEY,
    job_id  TEXT NOT NULL,
    ttl     INTEGER NOT NULL CHECK (ttl >= 0),
    look_at INTEGER NOT NULL
) STRICT;

CREATE INDEX mainspring_idempotency_look ON mainspring_idempotency (look_at);
