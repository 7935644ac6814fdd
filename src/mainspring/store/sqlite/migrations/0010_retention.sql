-- How long finished jobs are kept, and how many of them, by team, queue and state; '' stands for any. The row for any of all
-- three is always there: where it says nothing, each node goes by its own. What a rule covers and ended before `reached` is
-- gone, so that nobody looks for it again; a change of any rule may mean other jobs, so `changes` counts them, and all begin anew.
CREATE TABLE mainspring_retention (
    team    TEXT NOT NULL DEFAULT '',
    queue   TEXT NOT NULL DEFAULT '',
    state   TEXT NOT NULL DEFAULT '',
    age     INTEGER CHECK (age > 0),
    keep    INTEGER CHECK (keep > 0),
    reached INTEGER,
    changes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (team, queue, state)
) STRICT, WITHOUT ROWID;

INSERT INTO mainspring_retention DEFAULT VALUES;

-- Workflows that were pruned while members of theirs are still to go: as many as there may be, they go in batches.
CREATE TABLE mainspring_pruned (
    workflow TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
