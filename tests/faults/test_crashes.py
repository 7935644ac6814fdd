"""Processes and servers die without warning; what was acknowledged is there afterwards."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from mainspring.model.job import JobState
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import open_store
from tests.support.factories import new_job, new_jobs, opened_session
from tests.support.postgres import FAST_AND_LOOSE, PostgresServer, running_server

pytestmark = pytest.mark.slow

ENQUEUE_FOR_EVER = """
import os, sys
from mainspring.store import open_store
from tests.support.factories import new_jobs
store = open_store(sys.argv[1])
while True:
    for job_id in store.enqueue(new_jobs(int(sys.argv[2]))):
        os.write(1, f"{job_id}\\n".encode())
"""


@pytest.mark.parametrize("batch", [1, 200])
def test_what_a_killed_process_had_acknowledged_is_there(url: str, batch: int) -> None:
    open_store(url).close()
    acknowledged: set[UUID] = set()
    for _ in range(5):
        acknowledged |= killed_after_a_while(url, batch)

    store = open_store(url)
    found = store.get(acknowledged)
    store.close()

    assert acknowledged
    assert set(found) == acknowledged
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def killed_after_a_while(url: str, batch: int) -> set[UUID]:
    """Let a process enqueue, kill it in the middle, and return the ids that it had been given."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENQUEUE_FOR_EVER, url, str(batch)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    timer = threading.Timer(random.uniform(0.05, 0.3), process.kill)
    timer.start()
    lines = [first, *process.stdout.read().splitlines(keepends=True)]
    process.wait()
    process.stdout.close()
    # Killed in the middle of a line, it had not finished saying so.
    return {UUID(line.decode().strip()) for line in lines if line.endswith(b"\n")}


@pytest.fixture
def mortal_server() -> Iterator[PostgresServer]:
    with running_server(FAST_AND_LOOSE) as server:
        yield server


def test_a_node_works_on_after_each_crash_of_the_server(mortal_server: PostgresServer) -> None:
    """Enqueue, claim and settle while the server crashes again and again: each job runs to its end, once."""
    store = open_store(mortal_server.url())
    session = opened_session(store)
    done = threading.Event()

    def crash_often() -> None:
        while not done.wait(0.7):
            mortal_server.stop("immediate")
            mortal_server.start()

    crashing = threading.Thread(target=crash_often)
    crashing.start()
    acknowledged: set[UUID] = set()
    settled: set[UUID] = set()
    try:
        for _ in range(60):
            acknowledged |= set(store.enqueue(new_jobs(20)))
            jobs = store.claim(session, "default", 50)
            settled |= store.settle([settle(job, Succeeded("1")) for job in jobs])
            store.beat(session, {})
            done.wait(0.05)
    finally:
        done.set()
        crashing.join()

    # Claims whose reply was lost are strays; a worker gives them back, here the test settles them.
    strays = store.get(store.beat(session, {}).strays)
    settled |= store.settle([settle(job, Succeeded("1")) for job in strays.values()])
    while jobs := store.claim(session, "default", 500):
        settled |= store.settle([settle(job, Succeeded("1")) for job in jobs])
    assert settled == acknowledged
    assert {job.state for job in store.get(acknowledged).values()} == {JobState.SUCCEEDED}
    assert {job.fence for job in store.get(acknowledged).values()} == {1}
    store.close()


def test_a_forked_child_is_told_to_open_its_own_store(url: str) -> None:
    store = open_store(url)
    store.enqueue([new_job()])
    script = f"""
import os, sys
from mainspring.errors import StoreError
from mainspring.store import open_store
store = open_store({url!r})
store.counts()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    store.counts()
except StoreError as error:
    os._exit(0 if "after a fork" in str(error) else 3)
os._exit(4)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=os.environ, cwd=Path(__file__).parents[2])

    assert done.returncode == 0
    store.close()


def test_a_forked_child_that_closes_the_store_leaves_its_parent_connected(postgres_url: str) -> None:
    script = f"""
import os, sys
from mainspring.store import open_store
store = open_store({postgres_url!r})
mine = store._db._connections._idle[0].info.backend_pid
child = os.fork()
if not child:
    store.close()
    os._exit(0)
os.waitpid(child, 0)
store.counts()
sys.exit(store._db.attempt(lambda session: session.connection.info.backend_pid) != mine)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=os.environ, cwd=Path(__file__).parents[2])

    assert done.returncode == 0


def test_a_forked_child_can_not_open_the_sqlite_file_that_its_parent_had_open(sqlite_url: str) -> None:
    """It would write to a log that the parent removes."""
    script = f"""
import os, sys
from mainspring.errors import StoreError
from mainspring.store import open_store
store = open_store({sqlite_url!r})
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    open_store({sqlite_url!r})
except StoreError as error:
    os._exit(0 if "call app.close() before the fork" in str(error) else 3)
os._exit(4)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=os.environ, cwd=Path(__file__).parents[2])

    assert done.returncode == 0


def test_a_forked_child_can_open_the_sqlite_file_that_its_parent_had_closed(sqlite_url: str) -> None:
    script = f"""
import os, sys
from mainspring.store import open_store
open_store({sqlite_url!r}).close()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
open_store({sqlite_url!r}).close()
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=os.environ, cwd=Path(__file__).parents[2])

    assert done.returncode == 0
