"""The first example that a newcomer runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.model.job import JobState
from mainspring.store import open_store
from tests.cli.program import python

EXAMPLE = Path(__file__).parents[2] / "examples" / "first_jobs.py"


def test_the_first_jobs_all_finish_however_often_they_are_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", url)

    for run in (1, 2):
        done = python(str(EXAMPLE))

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("all jobs have finished\n")
        store = open_store(url)
        jobs = store.page()
        store.close()
        assert [job.state for job in jobs] == [JobState.SUCCEEDED] * 4 * run
        assert sorted(job.attempt for job in jobs) == [1] * 3 * run + [2] * run


def test_a_bad_address_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", "nonsense")

    done = python(str(EXAMPLE))

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: ")
