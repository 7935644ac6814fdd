"""Options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.cli.values import FORMATS, LEVELS
from mainspring.model.job import JobState
from mainspring.scheduler.prune import RETENTION

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="MAINSPRING_URL",
        metavar="URL",
        help="The address of the database, or of a server.",
        show_envvar=True,
    ),
]
DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--url", envvar="MAINSPRING_URL", metavar="URL", help="The address of the database.", show_envvar=True
    ),
]
Team = Annotated[
    str | None,
    typer.Option(
        "--team", envvar="MAINSPRING_TEAM", metavar="TEAM", help="Whose: sees and changes what is this team's alone."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]

AppName = Annotated[
    str | None,
    typer.Option(
        "--app",
        envvar="MAINSPRING_APP",
        metavar="MODULE:NAME",
        help="The app: module:name, package.module or path/to/file.py:name.",
    ),
]

# Not MAINSPRING_URL: an app that names its database in its code means it, and its other processes go there.
AppUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The address of the database, in place of the app's own. An app that names none uses MAINSPRING_URL.",
    ),
]

LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level",
        envvar="MAINSPRING_LOG_LEVEL",
        metavar="LEVEL",
        help=f"What to log: {', '.join(LEVELS)}.",
        autocompletion=lambda: list(LEVELS),
    ),
]

LogFormat = Annotated[
    str,
    typer.Option(
        "--log-format",
        envvar="MAINSPRING_LOG_FORMAT",
        metavar="FORMAT",
        help="How to log: text, or json, which is one JSON object a line.",
        autocompletion=lambda: list(FORMATS),
    ),
]

Retention = Annotated[
    str,
    typer.Option(
        "--retention",
        envvar="MAINSPRING_RETENTION",
        metavar="LENGTH",
        help="How long finished jobs are kept before they are pruned, where no rule says otherwise; by whole days.",
    ),
]
DEFAULT_RETENTION = f"{RETENTION.days}d"

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8400
Host = Annotated[
    str,
    typer.Option(
        "--host",
        envvar="MAINSPRING_HOST",
        metavar="HOST",
        help="Where to serve the API; beyond this machine to tokens only.",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        "--port", envvar="MAINSPRING_PORT", metavar="PORT", min=0, max=65_535, help="And on which port; 0 for any."
    ),
]

State = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="STATE", help="Only jobs in this state.", autocompletion=lambda: [str(s) for s in JobState]
    ),
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only jobs of this queue.")]
TaskName = Annotated[str | None, typer.Option("--task", metavar="TASK", help="Only jobs of this task.")]
Key = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Only jobs with this key.")]
_AGO = "an instant, or how long ago it was, such as 90m"
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help=f"Only jobs made then or later: {_AGO}.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only jobs made before.")]
FinishedSince = Annotated[
    str | None, typer.Option("--finished-since", metavar="TIME", help="Only jobs that ended then or later.")
]
FinishedUntil = Annotated[
    str | None, typer.Option("--finished-until", metavar="TIME", help="Only jobs that ended before.")
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error", metavar="TEXT", help="Only jobs whose last failure says this, in ASCII letters of either case."
    ),
]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, whole or as a listing shows it.")]

# Pages of jobs.
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many jobs to list.")]
Before = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="Only jobs older than this one, for the next page.")
]
