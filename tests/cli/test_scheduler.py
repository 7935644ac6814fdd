"""`mainspring scheduler`: the sweeps without a worker."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring.cli import scheduler as module
from mainspring.errors import StoreError
from mainspring.model.job import JobState
from mainspring.model.session import NewSession
from mainspring.store import Store
from tests.cli.jobs import IDS, jobs_in
from tests.cli.program import assert_refused, eventually, in_process, mainspring, running
from tests.cli.projects import jobs_at


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_scheduler_promotes_and_reaps_until_it_is_told_to_stop(number: int, url: str, tmp_path: Path) -> None:
    with jobs_in(url) as jobs:
        doomed = NewSession(id=IDS.next(), name="doomed", lease=timedelta(milliseconds=100))
        jobs.store.open_session(doomed)
        jobs.add(task="lost")
        assert jobs.store.claim(doomed.id, "default", 1)
        jobs.add(task="late", delay=1)

    with running("scheduler", "--url", url, folder=tmp_path) as scheduler:
        (line,) = scheduler.wait_for("sweeping database")
        eventually(lambda: [job.state for job in jobs_at(url)] == [JobState.READY] * 2)
        scheduler.signal(number)
        assert scheduler.end() == 0

    assert jobs_at(url)[0].losses == 1
    assert " INFO " in line
    assert "Traceback" not in scheduler.output


def test_a_job_that_is_due_sooner_than_was_known_is_heard_of(url: str, tmp_path: Path) -> None:
    with jobs_in(url) as jobs, running("scheduler", "--url", url, folder=tmp_path) as scheduler:
        scheduler.wait_for("sweeping database")
        job = jobs.add(delay=1)
        eventually(lambda: jobs.get(job).state is JobState.READY)


def test_the_scheduler_prunes_by_the_retention_that_it_was_told(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[timedelta] = []

    def make(_: Store, retention: timedelta) -> None:
        seen.append(retention)
        raise StoreError("enough was seen")

    monkeypatch.setattr(module, "Scheduler", make)

    in_process("scheduler", "--url", sqlite_url, "--retention", "7d")
    in_process("scheduler", "--url", sqlite_url)

    assert seen == [timedelta(days=7), timedelta(days=30)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--url", "nonsense"], ["sqlite:///mainspring.db"]),
        (["--log-level", "loud"], ["--log-level", "debug, info"]),
        (["--retention", "0s"], ["retention", "longer than 0", "30d"]),
        (["--retention", "a while"], ["--retention", "'a while'"]),
        (["--app", "tasks"], ["--app"]),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], words: list[str], tmp_path: Path) -> None:
    assert_refused(mainspring("scheduler", *options, folder=tmp_path), *words)
