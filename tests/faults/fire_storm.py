"""Nodes that fire the same schedules while they are killed one after the other: `python -m tests.faults.fire_storm`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.model.firing import LEAD
from mainspring.model.trigger import every
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from tests.faults.both_stores import on_both_stores
from tests.support.databases import execute, table
from tests.support.schedules import new_schedule

KILL_EVERY = 3.0
SECOND = timedelta(seconds=1)
MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Account:
    """What a storm came to. Every tick that has passed should be on record once, and every job be one of these.

    Early is a job that may start before its tick, or was made longer before it than it should.
    """

    passed: int
    recorded: int
    jobs: int
    jobs_on_record: int
    doubles: int
    early: int
    kills: int

    @property
    def balanced(self) -> bool:
        return self.passed == self.recorded and self.jobs == self.jobs_on_record and self.doubles == self.early == 0


def storm(url: str, *, schedules: int, seconds: float, nodes: int = 4) -> Account:
    """Fire schedules of every second with *nodes* processes; every three seconds one is killed and replaced."""
    store = open_store(url)
    store.put_schedules([new_schedule(f"s{number}", trigger=every("1s")) for number in range(schedules)])
    first = {schedule.id: _known(schedule.tick_at) for schedule in store.schedules(limit=schedules)}
    kills = 0
    with ExitStack() as started:
        alive = [started.enter_context(_node(url)) for _ in range(nodes)]
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            time.sleep(KILL_EVERY)
            victim = alive.pop(0)
            victim.kill()
            victim.wait()
            kills += 1
            alive.append(started.enter_context(_node(url)))
        for node in alive:
            node.send_signal(signal.SIGTERM)
        for node in alive:
            node.wait()
    account = _account(url, store, first, kills)
    store.close()
    return account


@contextmanager
def _node(url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-W", "ignore", "-m", "mainspring", "scheduler", "--url", url, "--log-level", "error"]
    node = subprocess.Popen(command, env={**os.environ, "PYTHONFAULTHANDLER": "1"})
    try:
        yield node
    finally:
        if node.poll() is None:
            node.kill()
        node.wait()


def _account(url: str, store: SqlStore, first: dict[str, datetime], kills: int) -> Account:
    standing = {schedule.id: _known(schedule.tick_at) for schedule in store.schedules(limit=len(first))}
    ticks = execute(url, f"SELECT count, job_id FROM {table(url, 'ticks')}")
    jobs = execute(url, f"SELECT id, schedule, tick, created_at, run_at FROM {table(url, 'jobs')}")
    lead = LEAD if url.startswith("postgres") else LEAD // MOMENT
    made = Counter((schedule, tick) for _, schedule, tick, *_ in jobs)
    return Account(
        passed=sum((standing[one] - first[one]) // SECOND for one in first),
        recorded=sum(count for count, _ in ticks),
        jobs=len(jobs),
        jobs_on_record=len({job_id for _, job_id in ticks if job_id} & {job_id for job_id, *_ in jobs}),
        doubles=sum(number - 1 for number in made.values()),
        early=sum(run_at < tick or created_at < tick - lead for _, _, tick, created_at, run_at in jobs),
        kills=kills,
    )


def _known(instant: datetime | None) -> datetime:
    assert instant is not None
    return instant


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fire_storm", description=__doc__)
    parser.add_argument("--schedules", type=int, default=500, help="of every second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="that it lasts (%(default)s)")
    given = parser.parse_args()
    on_both_stores(lambda url: storm(url, schedules=given.schedules, seconds=given.seconds))


if __name__ == "__main__":
    main()
