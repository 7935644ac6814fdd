"""How the commands that stay log."""

from __future__ import annotations

import json
import logging
import signal
from datetime import datetime
from pathlib import Path

import pytest

from mainspring.cli.log import JsonLines, _Formatter
from tests.cli.program import assert_refused, in_process, mainspring, running
from tests.cli.projects import jobs_at, write

SAYING = """
    import logging
    from mainspring import Context, Mainspring, Retry
    app = Mainspring()

    @app.task
    def say(ctx: Context, text: str) -> None:
        ctx.log(text)

    @app.task(retry=Retry(max_attempts=1))
    def fail(text: str) -> None:
        logging.getLogger("shop").error("about to %s", "fail")
        raise ValueError(text)
"""

FORGED = "hello\x1b]0;title\x07\n2026-01-01 00:00:00 INFO forged\r\u2028forged"


def test_what_a_job_says_can_neither_steer_the_terminal_nor_pass_for_another_line(
    sqlite_url: str, folder: Path
) -> None:
    write(folder / "tasks.py", SAYING)
    in_process("enqueue", "--url", sqlite_url, "say", "hello\x1b]0;title\x07\n2026-01-01 00:00:00 INFO forged")

    with running("worker", "--app", "tasks", "--url", sqlite_url, folder=folder) as worker:
        (line,) = worker.wait_for("hello")
        worker.signal(signal.SIGTERM)
        worker.end()

    assert "say: hello\\x1b]0;title\\x07\\n2026-01-01 00:00:00 INFO forged\n" in line
    assert "\x1b" not in worker.output


def test_a_traceback_keeps_its_lines_but_none_begins_like_one_of_ours() -> None:
    error = ValueError("first\n2026-01-01 00:00:00 INFO forged \x1b[31m")
    record = logging.LogRecord("mainspring", logging.ERROR, "", 0, "it failed", None, (ValueError, error, None))

    first, *rest = _Formatter("%(message)s").format(record).splitlines()

    assert first == "it failed"
    assert rest == ["    ValueError: first", "    2026-01-01 00:00:00 INFO forged \\x1b[31m"]


def test_a_traceback_that_another_has_formatted_is_formatted_anew() -> None:
    error = ValueError("first\n2026-01-01 00:00:00 INFO forged")
    record = logging.LogRecord("mainspring", logging.ERROR, "", 0, "it failed", None, (ValueError, error, None))
    logging.Formatter().format(record)

    assert "\n2026" not in _Formatter("%(message)s").format(record)


def test_json_is_one_object_a_line_with_the_job_where_it_is_known(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", SAYING)
    in_process("enqueue", "--url", sqlite_url, "say", FORGED)
    in_process("enqueue", "--url", sqlite_url, "fail", FORGED)
    said, failed = (str(job.id) for job in jobs_at(sqlite_url))

    options = ("--app", "tasks", "--url", sqlite_url, "--log-format", "json")
    with running("worker", *options, folder=folder) as worker:
        worker.wait_for("hello")
        worker.wait_for("failed in attempt")
        worker.signal(signal.SIGTERM)
        worker.end()

    told = [json.loads(line) for line in worker.lines]
    (by_job,) = [one for one in told if one["logger"] == "mainspring.job.say"]
    assert (by_job["message"], by_job["level"]) == (FORGED, "info")
    assert (by_job["job_id"], by_job["task"], by_job["attempt"]) == (said, "say", 1)
    (by_logging,) = [one for one in told if one["logger"] == "shop"]
    assert (by_logging["message"], by_logging["job_id"]) == ("about to fail", failed)
    (by_worker,) = [one for one in told if "failed in attempt" in one["message"]]
    assert (by_worker["job_id"], by_worker["task"]) == (failed, "fail")
    assert all("job_id" not in one for one in told if "serves" in one["message"])
    assert len({one["process"] for one in told}) == 1
    for one in told:
        assert datetime.fromisoformat(one["time"]).tzinfo is not None


def test_an_exception_is_a_field_of_its_record() -> None:
    error = ValueError(FORGED)
    record = logging.LogRecord("shop", logging.ERROR, "", 0, "it %s", ("failed",), (ValueError, error, None))

    line = JsonLines().format(record)

    assert len(line.splitlines()) == 1
    assert line.isascii()
    told = json.loads(line)
    assert told["message"] == "it failed"
    assert told["exception"].startswith("ValueError: hello")


@pytest.mark.parametrize("command", ["worker", "scheduler"])
def test_a_form_that_is_none_is_refused(command: str, sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", SAYING)
    options = ("--url", sqlite_url, "--log-format", "jsn", *(("--app", "tasks") if command == "worker" else ()))

    assert_refused(mainspring(command, *options, folder=folder), "--log-format", "text, json")


def test_a_supervisor_and_its_workers_and_a_scheduler_log_in_the_same_form(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", SAYING)
    options = ("--url", sqlite_url, "--log-format", "json")
    for command in (("worker", "--app", "tasks", "--processes", "2"), ("scheduler",)):
        with running(*command, *options, folder=folder) as program:
            program.wait_for("serves" if command[0] == "worker" else "sweeping", times=2 if len(command) > 1 else 1)
            program.signal(signal.SIGTERM)
            program.end()
        assert all(json.loads(line)["logger"].startswith("mainspring") for line in program.lines)
