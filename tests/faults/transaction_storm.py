"""Jobs that write rows in their own transaction while workers are killed: `python -m tests.faults.transaction_storm`.

The table that they write to has no key, so that a row which was written twice is there twice.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.store import open_store
from tests.faults.both_stores import on_both_stores
from tests.faults.workers import Workers, let_finish
from tests.support.databases import execute, table
from tests.support.waiting import until

LEASE = "1500ms"
LONGEST = 0.15
"""Seconds from the enqueueing of some jobs to the next kill, at most: about as long as they keep the workers busy."""


@dataclass(frozen=True)
class Account:
    """What a storm came to. `lost` are attempts whose worker died; `set_aside` are jobs that failed."""

    jobs: int
    succeeded: int
    set_aside: int
    rows: int
    missing: int
    doubles: int
    lost: int
    kills: int

    @property
    def balanced(self) -> bool:
        return self.succeeded == self.rows == self.jobs and self.missing == self.doubles == self.set_aside == 0


def storm(url: str, *, jobs: int, kills: int, workers: int) -> Account:
    """Enqueue *jobs* in as many parts as there are *kills*, and kill a worker while each part is under way."""
    open_store(url).close()
    execute(url, "CREATE TABLE effects (number INTEGER)")
    app = Mainspring(url)
    command = ["-m", "mainspring", "worker", "--app=tests.faults.transaction_tasks:app", f"--lease={LEASE}"]
    processes = Workers(workers, [*command, "--concurrency=4", "--log-level=error"], {"STORM_URL": url})
    with processes.running():
        for part in range(kills):
            until(lambda: at_work(app, processes.alive[0].pid) and not on_trial(url))
            for number in range(part, jobs, kills):
                app.enqueue("leave_a_row", args=[number])
            time.sleep(random.uniform(0, LONGEST))
            processes.kill()
            processes.start()
        let_finish(app)
    app.close()
    return _account(url, jobs, processes.kills)


def at_work(app: Mainspring, pid: int) -> bool:
    """Return whether the process has come so far that to kill it can do harm."""
    return any(session.name.endswith(f":{pid}") for session in app.client.store.sessions())


def on_trial(url: str) -> bool:
    """Return whether a job that was lost twice waits or runs, which a third loss would set aside.

    That is another guarantee; here each job is to come to its end. One that was lost before counts its next loss in
    advance while it runs.
    """
    trials = "losses >= 3 OR (losses = 2 AND state <> 'running')"
    return bool(execute(url, f"SELECT 1 FROM {table(url, 'jobs')} WHERE {trials} LIMIT 1"))


def _account(url: str, jobs: int, kills: int) -> Account:
    written = Counter(number for (number,) in execute(url, "SELECT number FROM effects"))
    states = Counter(state for (state,) in execute(url, f"SELECT state FROM {table(url, 'jobs_done')}"))
    ((lost,),) = execute(url, f"SELECT count(*) FROM {table(url, 'attempts')} WHERE outcome = 'lost'")
    return Account(
        jobs=jobs,
        succeeded=states["succeeded"],
        set_aside=states["failed"],
        rows=written.total(),
        missing=len(set(range(jobs)) - set(written)),
        doubles=sum(count - 1 for count in written.values()),
        lost=lost,
        kills=kills,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.transaction_storm", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000, help="%(default)s")
    parser.add_argument("--kills", type=int, default=100, help="%(default)s")
    parser.add_argument("--workers", type=int, default=6, help="%(default)s")
    given = parser.parse_args()
    on_both_stores(lambda url: storm(url, jobs=given.jobs, kills=given.kills, workers=given.workers))


if __name__ == "__main__":
    main()
