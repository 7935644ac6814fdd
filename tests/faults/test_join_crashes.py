"""A process that enqueues in its own transaction is killed: its rows and its job are there together, or neither is."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mainspring.model.payload import decode_call
from mainspring.store import open_store
from tests.support.databases import execute

pytestmark = pytest.mark.slow

PROGRAM = """
import os, sqlite3, sys
import psycopg
from mainspring import Mainspring

url, stop, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
app = Mainspring(url)
conn = sqlite3.connect(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else psycopg.connect(url)

def reached(point, number):
    os.write(1, f"{point} {number}\\n".encode())
    if point == stop:
        sys.stdin.read()  # until we are killed

for number in range(first, first + 1_000_000):
    reached("begun", number)
    if number % 2:
        conn.execute(f"INSERT INTO orders VALUES ({number})")
    else:
        app.enqueue("confirm", [number], conn=conn)
    reached("half", number)
    if number % 2:
        app.enqueue("confirm", [number], key=f"order-{number}", conn=conn)
    else:
        conn.execute(f"INSERT INTO orders VALUES ({number})")
    reached("whole", number)
    conn.commit()
    reached("committed", number)
"""


@pytest.fixture
def prepared_url(url: str) -> str:
    open_store(url).close()
    execute(url, "CREATE TABLE orders (number INTEGER)")
    return url


def started(url: str, stop: str, first: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, stop, str(first)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )


def orders_and_jobs(url: str) -> tuple[list[int], list[int]]:
    orders = [number for (number,) in execute(url, "SELECT number FROM orders ORDER BY number")]
    store = open_store(url)
    jobs = sorted(decode_call(job.payload).args[0] for job in store.page(limit=1_000_000))
    store.close()
    return orders, jobs


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize(("stop", "kept"), [("begun", 0), ("half", 0), ("whole", 0), ("committed", 1)])
def test_killed_at_each_point_of_its_transaction(prepared_url: str, stop: str, kept: int, first: int) -> None:
    process = started(prepared_url, stop, first)
    assert process.stdout is not None
    while not process.stdout.readline().startswith(stop.encode()):
        pass
    process.kill()
    process.communicate()

    orders, jobs = orders_and_jobs(prepared_url)
    assert orders == jobs == [first][:kept]


def test_killed_at_any_moment(prepared_url: str) -> None:
    told: set[int] = set()
    for turn in range(5):
        process = started(prepared_url, "never", first=1 + turn * 1_000_000)
        assert process.stdout is not None
        process.stdout.readline()
        timer = threading.Timer(random.uniform(0.05, 0.3), process.kill)
        timer.start()
        lines = process.communicate()[0].splitlines(keepends=True)
        told |= {int(line.split()[1]) for line in lines if line.startswith(b"committed") and line.endswith(b"\n")}

    orders, jobs = orders_and_jobs(prepared_url)
    assert orders == jobs
    assert told
    assert told <= set(orders)
