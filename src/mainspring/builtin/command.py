"""`mainspring.command`: a program of the system as a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from mainspring.builtin.arguments import Attempts, Length
from mainspring.errors import CommandRefused
from mainspring.model.duration import duration
from mainspring.model.task import Executor, Task

Size = Annotated[int, Meta(ge=1)]
Text = Annotated[str, Meta(max_length=131_072)]
ExitCode = Annotated[int, Meta(ge=0, le=255)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


_NOT_FOR_JOBS = re.compile(
    r"PATH|IFS|ENV|SHELLOPTS|BASH.*|PS[0-4]|PROMPT_COMMAND|CDPATH|FPATH|ZDOTDIR|LD_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|"
    r"OPENSSL_.*|DOTNET_STARTUP_HOOKS|COR_.*|CORECLR_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|NPM_.*|JAVA_.*|_JAVA_.*|JDK_.*|CLASSPATH|LUA_.*|PHP.*|R_.*|"
    r"GIT_.*|SSH_.*|RSYNC_.*|TAR_.*|MAKE.*|LESS.*|(.*_)?(PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|SHELL)|MAINSPRING_.*"
)
"""What makes the loader, a shell or an interpreter run other code than the program that was allowed.

It can't name all that programs go by: one that is allowed must be one that may be given any environment. Where
it looks for its settings (HOME, XDG_CONFIG_HOME, KUBECONFIG, AWS_CONFIG_FILE) is for jobs to say, as its arguments are.
"""


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
    ok: Annotated[list[ExitCode], Meta(min_length=1)] = [0],  # noqa: B006 - never changed
    limits: Limits | None = None,
    timeout: Length | None = None,
    max_attempts: Attempts = 5,
) -> dict[str, Any]:
    """Run a program, never through a shell, and return its `exit_code` and the end of its `output`.

    An exit code that is not among *ok* fails the attempt. What it says is kept in the job's log, line by line. Only
    workers that allow it run it: they do so in `worker/executors/commands.py`, not by calling this.
    """
    raise NotImplementedError


def _check(given: Mapping[str, Any]) -> None:
    """Refuse a command that no worker would run."""
    for name in given.get("env") or {}:
        if _NOT_FOR_JOBS.fullmatch(name):
            raise CommandRefused(f"a job can't set {name}, which makes a program run other code than its own")
    if given.get("timeout") is not None:
        duration(given["timeout"], "timeout")


COMMAND = Task(
    name="mainspring.command", handler=command, executor=Executor.COMMAND, attempts="max_attempts", check=_check
)
