"""`mainspring jobs list`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from mainspring.cli.ids import short
from mainspring.model.retry import Retry
from tests.cli.databases import migrated
from tests.cli.jobs import FAILED, Jobs, jobs_in
from tests.cli.program import Done, assert_refused, in_process, mainspring

ALSO_FROM_AFAR = True


def listed(*options: str) -> list[str]:
    """Return the ids that are listed with *options*."""
    done = in_process("jobs", "list", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return [job["id"] for job in json.loads(done.stdout)["jobs"]]


def rows(done: Done) -> list[list[str]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]


def test_jobs_are_listed_newest_first_and_fit_80_columns(url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    with jobs_in(url) as jobs:
        older, failed, later = jobs.succeed(), jobs.fail(task="send", queue="mail"), jobs.add(delay=3600)

    done = mainspring("jobs", "list", "--url", url)

    head, *table = rows(done)
    assert head == ["Id", "Task", "Queue", "State", "Att.", "When"]
    assert table == [
        [short(later), "greet", "default", "scheduled", "0", "in", "60m"],
        [short(failed.id), "send", "mail", "failed", "1", *table[1][5:]],
        [short(older.id), "greet", "default", "succeeded", "1", *table[2][5:]],
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_wide_terminal_shows_whole_ids(jobs: Jobs, terminal: Callable[[int], None]) -> None:
    job = jobs.add()
    terminal(120)

    assert rows(in_process("jobs", "list"))[1][0] == str(job)


def test_long_names_fold_and_nothing_is_lost(jobs: Jobs, terminal: Callable[[int], None]) -> None:
    jobs.add("a" * 100, "q" * 100)
    terminal(80)

    done = in_process("jobs", "list")

    assert done.stdout.count("a") >= 100
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_pipe_gets_each_job_whole_on_a_line_of_its_own(jobs: Jobs) -> None:
    job = jobs.add("a" * 128, "q" * 128)

    (_, line) = rows(in_process("jobs", "list"))

    assert line[:4] == [str(job), "a" * 128, "q" * 128, "ready"]


def test_progress_is_shown_where_there_is_any(jobs: Jobs) -> None:
    running, counting = jobs.run(), jobs.run()
    jobs.progress(running, 1, 4)
    jobs.progress(counting, 7, None)

    head, second, first = rows(in_process("jobs", "list"))

    assert head[-1] == "Done"
    assert (first[3], first[-1], second[-1]) == ("running", "25%", "7")


def test_a_job_that_is_tried_again_says_when(jobs: Jobs) -> None:
    jobs.end(FAILED, Retry(max_attempts=2, base="10m"))

    assert rows(in_process("jobs", "list"))[1][3:] == ["retrying", "1", "in", "10m"]


def test_jobs_can_be_chosen_by_what_they_are_like(jobs: Jobs) -> None:
    greeted, failed, sent = str(jobs.succeed().id), str(jobs.fail(queue="mail").id), str(jobs.add("send", key="k"))

    assert listed() == [sent, failed, greeted]
    assert listed("--state", "failed") == [failed]
    assert listed("--queue", "mail") == [failed]
    assert listed("--task", "greet") == [failed, greeted]
    assert listed("--key", "k") == [sent]
    assert listed("--task", "greet", "--state", "succeeded") == [greeted]
    assert listed("--task", "other") == []


def test_jobs_can_be_chosen_by_time_and_by_error(jobs: Jobs) -> None:
    failed, waiting = jobs.fail(), str(jobs.add())
    assert failed.finished_at is not None
    ended, later = (moment.isoformat() for moment in (failed.finished_at, failed.finished_at + timedelta(hours=1)))

    assert listed("--since", "1h") == listed("--until", later) == [waiting, str(failed.id)]
    assert listed("--since", later) == listed("--until", "1h30m") == []
    assert listed("--finished-since", ended) == listed("--finished-until", later) == [str(failed.id)]
    assert listed("--finished-until", ended) == []
    assert listed("--error", "valueerror: NO LUCK") == [str(failed.id)]
    assert listed("--error", "luck had") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "yesterday",
            ["an instant like 2026-11-18T09:00Z, or a length of time like 90m for how long ago", "'yesterday'"],
        ),
        ("-5m", ["a length of time like 90m", "'-5m'"]),
        ("nan", ["a length of time like 90m", "'nan'"]),
        ("2026-11-18T09:00", ["a time zone", "2026-11-18T09:00Z"]),
        ("99999999999d", ["between 0 and 100 years", "'99999999999d'"]),
        ("9" * 20, ["between 0 and 100 years"]),
    ],
)
def test_what_is_neither_an_instant_nor_how_long_ago_it_was_is_refused(
    text: str, words: list[str], sqlite_url: str
) -> None:
    assert_refused(in_process("jobs", "list", "--since", text, "--url", sqlite_url), "expected --since to", *words)


def test_a_long_list_comes_in_pages(jobs: Jobs) -> None:
    ids = [str(jobs.add()) for _ in range(5)][::-1]

    first = in_process("jobs", "list", "--limit", "2")

    hint = first.stdout.splitlines()[-1].split()[-1]
    assert hint == short(jobs.get(jobs.store.page(limit=2)[-1].id).id)
    assert listed("--limit", "2", "--before", hint) == ids[2:4]
    assert listed("--limit", "2", "--before", ids[3]) == ids[4:]
    assert listed("--before", "ffffffff-ffff-7fff-bfff-ffffffffffff") == ids
    assert "There may be more" not in in_process("jobs", "list", "--limit", "6").stdout


def test_programs_are_told_all_about_each_job(jobs: Jobs) -> None:
    failed = jobs.fail(key="k")

    done = in_process("jobs", "list", "--limit", "1", "--json")

    told = json.loads(done.stdout)
    (job,) = told["jobs"]
    assert told["before"] == str(failed.id)
    assert (job["id"], job["task"], job["state"], job["key"]) == (str(failed.id), "greet", "failed", "k")
    assert (job["args"], job["kwargs"]) == (["Ada", 1], {"loud": True})
    assert (job["error"]["type"], job["result"], job["attempt"]) == ("ValueError", None, 1)
    assert job["finished_at"] > job["created_at"]


def test_without_jobs_it_says_how_to_get_some(sqlite_url: str) -> None:
    migrated(sqlite_url)

    done = in_process("jobs", "list", "--url", sqlite_url)
    none = in_process("jobs", "list", "--url", sqlite_url, "--state", "failed")

    assert done.stdout == f"No jobs in {sqlite_url}. Enqueue one with `mainspring enqueue TASK`.\n"
    assert (none.returncode, none.stdout) == (0, "No job is like that.\n")


def test_looking_makes_no_database(sqlite_url: str) -> None:
    for command in (["jobs", "list"], ["jobs", "show", "0" * 32], ["jobs", "cancel", "0" * 32], ["workers"]):
        assert_refused(in_process(*command, "--url", sqlite_url), sqlite_url.removeprefix("sqlite:///"), "--url")
    assert_refused(in_process("jobs", "list", "--url", sqlite_url), "there is no database")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--state", "faild"], ["did you mean 'failed'?"]),
        (["--state", "x"], ["one of blocked, scheduled"]),
        (["--limit", "0"], ["--limit"]),
        (["--before", "xyz"], ["id of a job", "'xyz'"]),
        (["--url", "nonsense"], ["sqlite:///mainspring.db"]),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], words: list[str], jobs: Jobs) -> None:
    assert_refused(in_process("jobs", "list", *options), *words)


def test_a_mistyped_command_is_named() -> None:
    assert_refused(in_process("jobs", "lst"), "'lst'", "did you mean 'list'?")
    assert_refused(mainspring("jobs", "xyz"), "'xyz'", "`mainspring jobs --help`")
