-- How long finished jobs are kept, and how many of them, by team, queue and state; '' stands for any. The row for any of all
-- three is always there: where it says nothing, each node goes by its own. What a rule covers and ended before `reached` is
-- gone, so that nobody looks for it again; a change of any rule may mean other jobs, so `changes` counts them, and all begin anew.
CREATE TABLE mainspring.retention (
    team    text NOT NULL DEFAULT '',
    queue   text NOT NULL DEFAULT '',
    state   text NOT NULL DEFAULT '',
    age     interval CHECK (age > interval '0'),
    keep    integer CHECK (keep > 0),
    reached timestamptz,
    changes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (team, queue, state)
);

INSERT INTO mainspring.retention DEFAULT VALUES;

-- Workflows that were pruned while members of theirs are still to go: as many as there may be, they go in batches.
CREATE TABLE mainspring.pruned (
    workflow uuid PRIMARY KEY
);
