"""`mainspring jobs show` and `mainspring jobs logs`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from mainspring.cli.ids import short
from mainspring.cli.jobs.logs import following
from mainspring.client import Client
from mainspring.job_handle import JobHandle
from mainspring.model.failure import Failure
from mainspring.model.job import NewJob
from mainspring.model.journal import LogEntry, LogFilter, LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import Failed, Lost, Succeeded
from mainspring.model.payload import encode_call
from mainspring.model.retry import Retry
from tests.cli.jobs import FAILED, Jobs, jobs_in
from tests.cli.program import assert_refused, in_process, mainspring, running
from tests.support.factories import new_job

ALSO_FROM_AFAR = True


def shown(job_id: object) -> str:
    """Return what is shown of a job, each run of blanks as one."""
    done = in_process("jobs", "show", str(job_id))
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())


def test_a_job_is_shown_with_all_its_facts(url: str) -> None:
    with jobs_in(url) as jobs:
        job = jobs.run(task="send", queue="mail", key="k")
        jobs.progress(job, 3, 4, "nearly")
        jobs.say(job, "one", "two")
        jobs.store.settle([settle(job, Succeeded('{"sent": true}'))])

    done = mainspring("jobs", "show", str(job.id), "--url", url)

    text = "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        f"Job {job.id}",
        "State succeeded",
        "Task send",
        'Arguments "Ada", 1, loud=true',
        "Queue mail, priority 5",
        "Key k",
        "Attempt 1",
        "Worker host:1234",
        "Progress 3 of 4, 75% (nearly)",
        'Result {"sent":true}',
        "Log of its last attempt",
    ):
        assert line in text.splitlines()
    assert "info one\n" in text
    assert text.endswith("info two")


def test_a_failed_job_shows_its_error_and_every_attempt(jobs: Jobs) -> None:
    job = jobs.end(FAILED, Retry(max_attempts=2, base="0s"))
    jobs.store.promote()
    (again,) = jobs.store.claim(jobs.session.id, "default", 1)
    jobs.store.settle([settle(again, FAILED)])

    text = shown(job.id)

    assert "Error\nTraceback …\nValueError: no luck\n" in text
    assert "1 failed" in text
    assert "2 failed" in text


def test_what_is_shown_fits_a_terminal_and_a_pipe_gets_it_unwrapped(
    jobs: Jobs, terminal: Callable[[int], None]
) -> None:
    job = jobs.add("a" * 128, "q" * 128).hex
    unwrapped = in_process("jobs", "show", job).stdout
    terminal(80)

    assert f"{'q' * 128}, priority" in unwrapped
    assert max(map(len, in_process("jobs", "show", job).stdout.splitlines())) <= 80


@pytest.mark.parametrize("failure", [FAILED, Lost("its lease ended")], ids=["failed", "lost"])
def test_a_failure_that_was_overcome_is_not_shown_as_the_jobs_error(failure: Failed | Lost, jobs: Jobs) -> None:
    job = jobs.end(failure, Retry(max_attempts=2, base="0s"))
    assert f"\nLast failure: attempt 1, {failure.name}\n" in shown(job.id)
    jobs.store.promote()
    (again,) = jobs.store.claim(jobs.session.id, "default", 1)
    jobs.store.settle([settle(again, Succeeded("1"))])

    text = shown(job.id)

    assert "State succeeded" in text
    assert f"\nLast failure: attempt 1, {failure.name}\n" in text
    assert "\nError\n" not in text


def test_a_job_that_waits_says_why(jobs: Jobs) -> None:
    jobs.store.close_session(jobs.session.id)
    job = jobs.add(delay=3600)
    paused = jobs.add()
    jobs.store.pause([paused], "on hold")

    text = shown(job)
    assert "Waits it is due at" in text
    assert "(about 60m)\nit is made ready by itself at that time" in text
    assert "Waits no worker is alive\nstart one with `mainspring worker`" in text
    assert "Reason on hold" in shown(paused)


def test_a_job_that_was_asked_to_stop_says_so(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.store.cancel([job.id])

    text = shown(job.id)

    assert "State running" in text
    assert "Asked to cancel" in text
    assert "1 running" in text


def test_only_the_last_lines_are_shown(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.say(job, *(f"line {number}." for number in range(1, 26)))

    text = shown(job.id)

    assert "Log, the last 10 of 25 lines of its last attempt" in text
    assert "line 16." in text
    assert "line 15." not in text


def test_a_job_without_arguments_says_so(jobs: Jobs) -> None:
    jobs.store.enqueue([NewJob(id=UUID(int=1), task="greet", payload=encode_call([], {}))])

    assert "Arguments none" in shown(UUID(int=1))


def test_what_would_change_the_terminal_is_shown_as_escapes(jobs: Jobs) -> None:
    job = jobs.run(key="\x1b[2Jkey")
    jobs.say(job, "\x1b]0;owned\x07 [bold]not markup[/bold] \x9b")
    jobs.store.settle([settle(job, Failed(Failure(type="E", message="\x1b[31m")))])

    for command in ("show", "logs"):
        done = in_process("jobs", command, str(job.id))
        assert "\x1b" not in done.stdout
        assert "\x9b" not in done.stdout
        assert r"\x1b]0;owned\x07 [bold]not markup[/bold] \x9b" in done.stdout


def test_programs_are_told_the_same_in_json(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.say(job, "one")
    jobs.store.settle([settle(job, FAILED)])

    told = json.loads(in_process("jobs", "show", str(job.id), "--json").stdout)

    assert (told["id"], told["state"], told["session"]) == (str(job.id), "failed", str(jobs.session.id))
    assert told["error"]["message"] == "no luck"
    assert [(attempt["number"], attempt["outcome"]) for attempt in told["attempts"]] == [(1, "failed")]
    assert [(line["level"], line["message"]) for line in told["log"]] == [("info", "one")]
    assert told["waits_because"] == []


def test_programs_are_told_what_a_job_comes_after(jobs: Jobs) -> None:
    first, plain = jobs.add(), jobs.add()
    job = new_job(parents=(Edge(first, IfFailed.RUN),))
    jobs.store.enqueue([job])

    told = json.loads(in_process("jobs", "show", str(job.id), "--json").stdout)
    other = json.loads(in_process("jobs", "show", str(plain), "--json").stdout)

    assert (told["workflow"], told["parents"], told["pending"]) == (None, [{"id": str(first), "if_failed": "run"}], 1)
    assert [reason["code"] for reason in told["waits_because"]][:1] == ["dependency"]
    assert (other["workflow"], other["parents"], other["pending"]) == (None, [], None)


def test_of_many_parents_the_first_are_shown(jobs: Jobs) -> None:
    parents = [jobs.add() for _ in range(8)]
    job = new_job(parents=tuple(Edge(parent, IfFailed.WAIT) for parent in parents))
    jobs.store.enqueue([job])

    text = shown(job.id)

    assert text.count("After ") == 6
    assert "After and 3 more; --json has them all" in text
    assert "Workflow" not in text


@pytest.mark.parametrize("form", ["whole", "short", "upper", "beginning", "without dashes", "ellipsis"])
def test_an_id_may_be_given_in_any_form_that_is_unique(form: str, jobs: Jobs) -> None:
    job = jobs.succeed().id
    text = {
        "whole": str(job),
        "short": short(job),
        "upper": str(job).upper(),
        "beginning": str(job)[:13],
        "without dashes": job.hex,
        "ellipsis": short(job).replace("..", "…"),
    }[form]

    assert f"Job {job}" in shown(text)


def test_jobs_of_one_instant_are_told_apart_by_the_end_of_their_ids(jobs: Jobs) -> None:
    ids = [UUID(f"01999999-9999-7000-8000-0000{number:08x}") for number in range(1, 1_201)]
    jobs.store.enqueue([NewJob(id=one, task="greet", payload=encode_call([], {})) for one in ids])

    assert f"Job {ids[0]}" in shown(short(ids[0]))
    assert f"Job {ids[-1]}" in shown(short(ids[-1]))
    assert_refused(in_process("jobs", "show", "019999999999"), "more than one job", "give more of it")


@pytest.mark.parametrize("command", ["show", "logs"])
@pytest.mark.parametrize("text", ["01999999-9999-7000-8000-000000000000", "019999999999..000000", "01999999"])
def test_an_id_that_no_job_has_is_named_and_the_exit_code_tells(command: str, text: str, jobs: Jobs) -> None:
    jobs.add()

    done = in_process("jobs", command, text)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: no job has the id {text}; it may have been pruned\n"


@pytest.mark.parametrize("text", ["xyz", "", "0199", "0" * 33, "01999999..", "../etc", "0199999\x1b9"])
def test_what_is_no_id_is_refused(text: str, jobs: Jobs) -> None:
    done = in_process("jobs", "show", text)

    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_all_that_a_job_has_logged_is_printed(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.say(job, *(f"line {number}" for number in range(1, 1_501)), level="warning")

    lines = in_process("jobs", "logs", short(job.id)).stdout.splitlines()
    told = json.loads(in_process("jobs", "logs", str(job.id), "--json").stdout)

    assert len(lines) == 1_500
    assert lines[-1].endswith("  warning  line 1500")
    assert [line["message"] for line in told["lines"][:2]] == ["line 1", "line 2"]


def test_a_job_that_has_logged_nothing_says_so(jobs: Jobs) -> None:
    job = jobs.add()

    assert in_process("jobs", "logs", str(job)).stdout == f"Job {job} has logged nothing.\n"


def test_what_a_job_has_logged_is_narrowed_down(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.store.record(
        [
            LogLine(job.id, job.fence, 1, "info", "one"),
            LogLine(job.id, job.fence, 2, "error", "two", "shop.mail"),
            LogLine(job.id, job.fence, 3, "error", "three"),
        ],
        [],
    )

    def printed(*options: str) -> list[str]:
        return [
            line.split("  ", 1)[1] for line in in_process("jobs", "logs", str(job.id), *options).stdout.splitlines()
        ]

    assert printed("--level", "warning") == ["error    shop.mail: two", "error    three"]
    assert printed("--contains", "t", "--level", "ERROR") == ["error    shop.mail: two", "error    three"]
    assert printed("--contains", "one") == ["info     one"]
    assert in_process("jobs", "logs", str(job.id), "--contains", "o%").stdout.endswith(
        "has logged nothing like that.\n"
    )
    assert_refused(in_process("jobs", "logs", str(job.id), "--level", "loud"), "expected level to be one of debug")


def test_a_message_of_several_lines_can_not_pass_for_several_messages(jobs: Jobs) -> None:
    job = jobs.run()
    jobs.say(job, "x\n2026-01-01 00:00:00  error    forged")

    first, second = in_process("jobs", "logs", str(job.id)).stdout.splitlines()
    assert first.endswith("  info     x")
    assert second == "    2026-01-01 00:00:00  error    forged"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_logs_are_followed_until_the_job_ends(jobs: Jobs, tmp_path: Path, options: tuple[str, ...]) -> None:
    job = jobs.run()
    jobs.say(job, "first")

    with running("jobs", "logs", "-f", str(job.id), *options, folder=tmp_path) as follower:
        follower.wait_for("first")
        jobs.store.record(
            [LogLine(job.id, job.fence, number, "info", f"line {number}") for number in range(2, 1_502)], []
        )
        follower.wait_for("line 1501")
        jobs.store.record([LogLine(job.id, job.fence, 1_502, "info", "last")], [])
        jobs.store.settle([settle(job, Succeeded("1"))])
        assert follower.end() == 0
        lines = follower.lines

    assert len(lines) == 1_502
    assert "last" in lines[-1]
    if options:
        assert [json.loads(line)["number"] for line in lines] == list(range(1, 1_503))


def test_an_attempt_is_shown_with_its_worker_its_time_and_what_it_says_of_itself(jobs: Jobs) -> None:
    job = jobs.end(Succeeded("1", details='{"exit_code":0,"signal":"none"}'))
    assert jobs.store.close_session(jobs.session.id)

    text = shown(job.id)
    told = json.loads(in_process("jobs", "show", str(job.id), "--json").stdout)["attempts"][0]

    assert "host:1234 exit code 0; signal none" in text
    assert (told["worker"], told["details"]) == ("host:1234", {"exit_code": 0, "signal": "none"})
    assert told["duration_seconds"] >= 0


def test_what_is_said_just_before_the_end_is_followed(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job ends between the look at its lines and whatever the follower does next."""
    job, look = jobs.run(), jobs.store.logs

    def look_and_end(*args: Any, **kwargs: Any) -> list[LogEntry]:
        found = look(*args, **kwargs)
        if not jobs.get(job.id).state.final:
            jobs.say(job, "last")
            jobs.store.settle([settle(job, Succeeded("1"))])
        return found

    monkeypatch.setattr(jobs.store, "logs", look_and_end)
    client = Client("sqlite:///:memory:")
    monkeypatch.setattr(client, "_store", jobs.store)
    followed = following(JobHandle(client, job.id), LogFilter(), lambda _: None)

    assert [line.message for line in followed] == ["last"]
