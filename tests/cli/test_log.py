"""How the commands that stay log."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

from mainspring.cli.log import _Formatter
from tests.cli.program import in_process, running
from tests.cli.projects import write

SAYING = """
    from mainspring import Context, Mainspring
    app = Mainspring()

    @app.task
    def say(ctx: Context, text: str) -> None:
        ctx.log(text)
"""


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
