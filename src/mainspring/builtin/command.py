"""`mainspring.command`: a program of the system as a job."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from mainspring.builtin.arguments import Attempts, Length
from mainspring.model.task import Executor, Task

Size = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(max_length=131_072)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What each process of a command may use: seconds of processor time, bytes of memory, and so on."""

    cpu: Size | None = None
    memory: Size | None = None
    files: Size | None = None
    processes: Size | None = None
    file_size: Size | None = None


def command(  # noqa: PLR0913 - one parameter for each thing that a job may say of it
    argv: Annotated[list[Text], Meta(min_length=1, max_length=4_096)],
    env: dict[Name, Text] | None = None,
    cwd: Annotated[str, Meta(pattern="^/")] | None = None,
    stdin: str | None = None,
    ok: list[Annotated[int, Meta(ge=0, le=255)]] = [0],  # noqa: B006 - never changed
    limits: Limits | None = None,
    timeout: Length | None = None,
    max_attempts: Attempts = 5,
) -> dict[str, Any]:
    """Run a program, never through a shell, and return its `exit_code` and the end of its `output`.

    An exit code that is not among *ok* fails the attempt. What it says is kept in the job's log, line by line. Only
    workers that allow it run it: they do so in `worker/executors/commands.py`, not by calling this.
    """
    raise NotImplementedError


COMMAND = Task(name="mainspring.command", handler=command, executor=Executor.COMMAND, attempts="max_attempts")
