"""`mainspring bench` measures, asks before it fills a database, and leaves nothing behind that would still run."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from mainspring import JobState, Mainspring
from mainspring.cli import bench
from tests.cli.program import assert_refused, in_process
from tests.cli.terminal import Terminal

FIGURES = {"enqueue_per_second", "drain_per_second", "start_p50_ms", "start_p99_ms", "commit_ms"}


def states(url: str) -> dict[JobState, int]:
    with closing(Mainspring(url)) as app:
        return {state: found for state in JobState if (found := len(app.jobs(state=state, limit=10_000)))}


def test_it_measures_on_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    done = in_process("bench", "--jobs", "500", "--json")

    figures = json.loads(done.stdout)
    assert figures.keys() >= FIGURES
    assert all(figures[name] > 0 for name in FIGURES)
    assert list(tmp_path.iterdir()) == []


def test_people_get_a_table() -> None:
    done = in_process("bench", "--jobs", "500")

    assert "claim, execute, settle" in done.stdout
    assert "jobs/s" in done.stdout


def test_a_database_is_filled_only_if_that_was_said(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"

    assert_refused(in_process("bench", "--url", url, "--jobs", "500"), "add --yes to do it")
    assert not (tmp_path / "own.db").exists()

    assert in_process("bench", "--url", url, "--jobs", "500", "--yes").returncode == 0
    assert states(url) == {JobState.SUCCEEDED: 700}


def test_who_says_no_is_told_that_nothing_has_happened(folder: Path) -> None:
    with Terminal("-m", "mainspring", "bench", "--url", "sqlite:///own.db", "--jobs", "500", folder=folder) as terminal:
        terminal.wait_for("Leave 700 finished jobs in that database? [y/N]")
        terminal.press(b"n\n")
        assert terminal.end() == 0
        assert "Nothing was changed." in terminal.text
    assert list(folder.iterdir()) == []


def test_who_reads_json_at_a_terminal_sees_nothing_else(folder: Path) -> None:
    with Terminal("-m", "mainspring", "bench", "--jobs", "500", "--json", folder=folder) as terminal:
        assert terminal.end() == 0
        assert "Enqueue jobs" not in terminal.text
        assert "Start jobs" not in terminal.text
        assert json.loads(terminal.text)["jobs"] == 500


def test_what_is_cut_short_leaves_nothing_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_working", interrupted)
    url = f"sqlite:///{tmp_path / 'own.db'}"

    assert in_process("bench", "--url", url, "--jobs", "500", "--yes").returncode == 130
    assert states(url) == {JobState.CANCELLED: 500}


def test_nothing_but_its_own_jobs_is_touched(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    with closing(Mainspring(url)) as app:
        delayed = app.enqueue("theirs", run_after="1ms")  # which a scheduler would make ready

        assert in_process("bench", "--url", url, "--jobs", "500", "--yes").returncode == 0

        assert delayed.state is JobState.SCHEDULED
        assert [schedule.id for schedule in app.schedules.list()] == []
