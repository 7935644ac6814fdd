"""The example that is seen at work."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from mainspring.model.job import JobState
from tests.cli.program import Running, python, running
from tests.cli.projects import jobs_at

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart.py"


def test_each_job_is_told_of_as_it_finishes(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", url)
    monkeypatch.setenv("QUICKSTART_SECONDS", "1")

    done = python(str(EXAMPLE), folder=tmp_path)

    jobs = jobs_at(url)
    assert (done.returncode, done.stderr) == (0, "")
    assert {job.task for job in jobs} == {"greet", "look_up", "deliver", "paint"}
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert '"Hello, Ada!"' in done.stdout
    assert "attempt 1 failed: nobody opens the door" in done.stdout
    assert "parcel 0 delivered at attempt 2" in done.stdout
    assert done.stdout.endswith(f"{len(jobs)} jobs have finished.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_when_it_is_told_to(number: int, tmp_path: Path) -> None:
    with Running(str(EXAMPLE), folder=tmp_path) as example:
        example.wait_for("paint    running")
        example.signal(number)
        assert example.end() == 0

    assert "Traceback" not in example.output
    assert "jobs have finished." in example.lines[-1]
    assert JobState.RUNNING not in {job.state for job in jobs_at(f"sqlite:///{tmp_path}/mainspring.db")}


def test_a_worker_can_run_it_too(tmp_path: Path) -> None:
    with running("worker", "--app", str(EXAMPLE), folder=tmp_path) as worker:
        worker.wait_for("queues default, long, concurrency 8, 4 tasks: deliver, greet, look_up, paint")


def test_a_bad_address_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", "nonsense")

    done = python(str(EXAMPLE), folder=tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: ")
