-- Which job stands for an idempotency key, and for how long past its finish. Whether it still does is judged when the
-- key is used again, so that a job that finishes need not know of it; prune looks at a row no sooner than `look_at`.
CREATE TABLE mainspring.idempotency (
    key     text PRIMARY KEY,
    job_id  uuid NOT NULL,
    ttl     interval NOT NULL CHECK (ttl >= interval '0'),
    look_at timestamptz NOT NULL
);

CREATE INDEX idempotency_look ON mainspring.idempotency (look_at);
