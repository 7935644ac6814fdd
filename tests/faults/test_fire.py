"""Schedules are fired by many nodes, of which any may die at any moment or have a clock that is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from mainspring.model.firing import LEAD
from mainspring.model.tick import Verdict
from mainspring.model.trigger import every
from mainspring.store import open_store
from tests.faults.fire_storm import storm
from tests.support.databases import execute, table
from tests.support.factories import new_jobs
from tests.support.schedules import new_schedule

pytestmark = pytest.mark.slow

_NODE_WITH_A_CLOCK_THAT_JUMPS = """
import itertools, sys, time
from datetime import UTC, datetime, timedelta
from mainspring import clock
from mainspring.cli.main import app

started = time.monotonic()

def now(self):
    # An hour ahead, right, and an hour behind, a second each.
    return datetime.now(UTC) + timedelta(hours=(1, 0, -1)[int(time.monotonic() - started) % 3])

clock.SystemClock.now = now
app(["scheduler", "--url", sys.argv[1], "--log-level", "error"])
"""


def test_every_tick_is_accounted_for_while_nodes_are_killed(url: str) -> None:
    account = storm(url, schedules=100, seconds=9)

    assert account.balanced, account
    assert account.kills >= 3
    assert account.passed >= 5 * 100


def test_a_wrong_clock_on_a_node_fires_nothing_early_and_nothing_twice(postgres_url: str) -> None:
    # On SQLite the clock of the machine is the only one there is.
    store = open_store(postgres_url)
    store.put_schedules([new_schedule(trigger=every("500ms"))])
    store.enqueue(new_jobs(1, run_at=datetime.fromtimestamp(time.time() + 1800).astimezone()))
    command = [sys.executable, "-W", "ignore", "-c", _NODE_WITH_A_CLOCK_THAT_JUMPS, postgres_url]
    node = subprocess.Popen(command, env=dict(os.environ), cwd=Path(__file__).parents[2])
    try:
        give_up = time.monotonic() + 60
        while len(store.ticks("s")) < 8 and time.monotonic() < give_up:
            time.sleep(0.1)
    finally:
        node.terminate()
        node.wait()

    ticks = store.ticks("s", limit=1_000)
    assert len(ticks) >= 8
    assert {tick.verdict for tick in ticks} <= {Verdict.FIRED, Verdict.COALESCED}
    assert all(tick.at - LEAD <= tick.decided_at for tick in ticks)
    assert len({tick.at for tick in ticks}) == len(ticks)
    promoted = f"SELECT run_at <= now() + interval '50 ms' FROM {table(postgres_url, 'jobs')} WHERE state = 'ready'"
    assert {(True,)} == set(execute(postgres_url, promoted))
    store.close()
