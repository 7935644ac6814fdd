"""How long the pages of the dashboard take with a million jobs in the database, half of them finished.

The server is a process of its own; one client asks for each page again and again, with a token, and waits for the last
byte. What is filled in spans a week: jobs in all states, some of another team, dead letters of many causes, schedules
and workflows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from itertools import cycle
from statistics import median, quantiles
from urllib.parse import quote

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.api import served
from benchmarks.report import machine
from benchmarks.worker import postgres, sqlite
from mainspring import Mainspring, every
from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model import lifecycle
from mainspring.model.failure import Failure
from mainspring.model.ids import IdSource, first_id
from mainspring.model.job import Job, NewJob
from mainspring.model.links import Edge
from mainspring.model.outcome import Failed, Outcome, Succeeded
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing.clock import SettableClock

JOBS = 1_000_000
BATCH = 2_000
WEEK = timedelta(days=7)
GOAL = 200
SCHEDULES = 1_000
WORKFLOWS = 200
CAUSES = 40
RUNNING = 200
QUEUES = ("mail", "reports", "index", "imports")
TASKS = ("send", "report", "index", "import_rows", "resize")
PAYLOAD = '{"args":["Ada"],"kwargs":{"greeting":"Hello"}}'


class Filling:
    """A week in which half of the jobs finish at once, and the others stay."""

    def __init__(self, url: str) -> None:
        self.clock = SettableClock(SystemClock().now() - WEEK)
        self.store: SqlStore = open_store(url, clock=self.clock)
        self._ids = IdSource(lambda: microseconds(self.clock.now()) // 1_000, random_bits)
        self._session = self._ids.next()
        self._kinds = cycle([(task, queue) for task in TASKS for queue in QUEUES])
        self._teams = cycle(["acme"] + [None] * 49)
        self.store.open_session(NewSession(id=self._session, name="filling", lease=2 * WEEK))

    def run(self, jobs: int) -> None:
        steps = jobs // (2 * BATCH)
        for step in range(steps):
            self._finish(BATCH, "archive" if step == 0 else "default")
            self._stay(BATCH)
            self.clock.advance(WEEK / steps)
        self.store.close_session(self._session)
        self.store.close()

    def _finish(self, count: int, queue: str) -> None:
        """Have jobs succeed, and one in twenty fail for one of many causes."""
        new = [self._new(TASKS[n % len(TASKS)] if queue == "default" else "ancient", queue) for n in range(count)]
        self.store.enqueue(new)
        claimed = self.store.claim(self._session, queue, count)
        self.store.settle([lifecycle.settle(job, _outcome(n, job)) for n, job in enumerate(claimed)])

    def _stay(self, count: int) -> None:
        """Leave half of them ready, and of the others most due later, and some retrying, blocked or paused."""
        ready = [self._of_next_kind() for _ in range(count // 2)]
        later = [self._of_next_kind(delay=timedelta(days=8 + n % 20)) for n in range(count * 4 // 10)]
        blocked = [self._of_next_kind(parents=(Edge(parent.id),)) for parent in later[: count // 25]]
        retrying = [self._new("flaky", "retries") for _ in range(count // 25)]
        paused = [self._of_next_kind() for _ in range(count - count // 2 - count * 4 // 10 - 2 * (count // 25))]
        self.store.enqueue([*ready, *later, *blocked, *retrying, *paused])
        self.store.pause([job.id for job in paused], "by ada: while it is looked into")
        claimed = self.store.claim(self._session, "retries", len(retrying))
        failed = Failed(Failure(type="ConnectionError", message="no answer from upstream", traceback="…" * 500))
        self.store.settle(
            [lifecycle.settle(job, failed, Retry(max_attempts=9, base="20d", cap="20d")) for job in claimed]
        )

    def _of_next_kind(self, **more: object) -> NewJob:
        task, queue = next(self._kinds)
        return self._new(task, queue, **more)

    def _new(self, task: str, queue: str, **more: object) -> NewJob:
        one = {"id": self._ids.next(), "task": task, "queue": queue, "payload": PAYLOAD, "team": next(self._teams)}
        return NewJob(**one, **more)  # type: ignore[arg-type]


def _outcome(number: int, job: Job) -> Outcome:
    if number % 20:
        return Succeeded("null")
    cause = (job.id.int + number) % CAUSES
    message = f"row {number} of {job.id} is wrong in way {cause}"
    return Failed(Failure(type="ValueError", message=message, traceback="line\n" * 200, fingerprint=f"{cause:032x}"))


def fill(url: str, jobs: int) -> None:
    """Make a week's history, and then what is there now: what runs, schedules, workflows."""
    Filling(url).run(jobs)
    app = Mainspring(url)

    @app.task
    def step(number: int) -> int:
        return number

    for number in range(SCHEDULES):
        app.schedules.add(f"schedule-{number}", step, every("1h"), kwargs={"number": number})
    for _ in range(WORKFLOWS):
        with app.workflow("etl") as flow:
            flow.add(step, flow.add(step, 1))
        flow.enqueue()
    store, session = app.client.store, app.client.new_ids(1)[0]
    store.open_session(NewSession(id=session, name="busy", lease=timedelta(hours=1), queues=QUEUES))
    store.claim(session, QUEUES[0], RUNNING)
    app.close()
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")  # as autovacuum would have done within the week


def pages_of(url: str) -> dict[str, str]:
    """Return the addresses that are measured, by what they show."""
    app = Mainspring(url)
    deep = first_id(SystemClock().now() - WEEK / 2)
    failed, ready = app.jobs(state="failed", limit=1)[0].id, app.jobs(state="ready", limit=1)[0].id
    group, flow = app.dead.groups(limit=1)[0].fingerprint, app.workflows(limit=1)[0].id
    early = quote((SystemClock().now() - WEEK * 0.9).isoformat())
    app.close()
    return {
        "overview": "/",
        "jobs": "/jobs",
        "jobs, deep": f"/jobs?before={deep}",
        **{f"jobs, {state}": f"/jobs?state={state}" for state in ("ready", "running", "paused", "succeeded", "failed")},
        "jobs, of all teams": "/jobs?team=*",
        "jobs, of another team": "/jobs?team=acme",
        "jobs, of a queue": "/jobs?queue=mail",
        "jobs, of a task and a queue": "/jobs?task=send&queue=mail",
        "jobs, only very old ones fit": "/jobs?task=ancient",
        "jobs, none fits": "/jobs?task=unheard-of",
        "jobs, none has the key": "/jobs?key=unheard-of",
        "jobs, by a time long ago": f"/jobs?until={early}",
        "jobs, by an error": "/jobs?error=way+7",
        "jobs, failed by an error that none has": "/jobs?state=failed&error=unheard-of",
        "jobs, retrying by an error that none has": "/jobs?state=retrying&error=unheard-of",
        "a job that failed": f"/jobs/{failed}",
        "a job that waits": f"/jobs/{ready}",
        "schedules": "/schedules",
        "a schedule": "/schedules/schedule-7",
        "workflows": "/workflows",
        "a workflow": f"/workflows/{flow}",
        "dead letters": "/dead",
        "dead letters of a cause": f"/dead/{group}",
        "queues": "/queues",
        "a queue": "/queues/mail",
        "workers": "/workers",
    }


@contextmanager
def visiting(host: str, port: int, token: str) -> Iterator[tuple[HTTPConnection, dict[str, str]]]:
    connection = HTTPConnection(host, port, timeout=120)
    try:
        yield connection, {"Cookie": f"mainspring_token={token}"}
    finally:
        connection.close()


def times(url: str, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds that each page took, each time."""
    took: dict[str, list[float]] = {}
    pages = pages_of(url)
    with served(url) as (host, port, token), visiting(host, port, token) as (connection, headers):
        for number in range(rounds + 1):  # in turn, so that none has the caches to itself; the first to warm up
            for name, address in pages.items():
                begun = time.perf_counter()
                connection.request("GET", address, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status == 200, (address, answer.status, body[:2_000])
                if number:
                    took.setdefault(name, []).append((time.perf_counter() - begun) * 1e3)
    return took


def measure(store: str, jobs: int, rounds: int, table: Table) -> None:
    with {"sqlite": sqlite, "postgres": postgres}[store]() as url:
        fill(url, jobs)
        for name, took in times(url, rounds).items():
            p95 = quantiles(took, n=20)[18]
            colour = "green" if p95 <= GOAL else "red"
            table.add_row(store, name, f"{median(took):.0f}", f"[{colour}]{p95:.0f}[/]", f"{max(took):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    console.print(machine())
    table = Table(title=f"{options.jobs:,} jobs; milliseconds; goal: p95 {GOAL}", title_justify="left")
    for column in ("store", "page", "p50", "p95", "most"):
        table.add_column(column, justify="right" if column in ("p50", "p95", "most") else "left")
    for store in options.store or ["sqlite", "postgres"]:
        measure(store, options.jobs, options.rounds, table)
    console.print(table)


if __name__ == "__main__":
    main()
