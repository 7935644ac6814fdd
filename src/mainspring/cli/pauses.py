"""What the commands that pause and resume have in common, be it queues or tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import App
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.times import since
from mainspring.clock import SystemClock
from mainspring.documents.queues import pause_document
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.queue import Pausable, Pause
from mainspring.model.text import shortened

Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for whoever wonders.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so, if not the user of this machine.")]

_MISSING = 1


def who(app: App, by: str | None) -> dict[str, str]:
    """Return what says that it is *by* somebody, if it is said; a server goes by the token."""
    if by is not None and not isinstance(app, Mainspring):
        raise InvalidValue(f"expected no --by, because the server knows by the token who it is, got: {shortened(by)}")
    return {} if by is None else {"by": by}


def tell_paused(paused: Sequence[Pause], as_json: bool) -> None:
    """Say what is paused now."""
    if as_json:
        say_json({"paused": [pause_document(pause) for pause in paused]})
        return
    for pause in paused:
        say(f"{pause.name} is paused, {by_whom(pause)}")


def resume_each(
    kind: Pausable,
    names: Sequence[str],
    resume: Callable[[str], bool],
    paused: Callable[[], Sequence[str]],
    as_json: bool,
) -> None:
    """Resume each of *names*, and complain of those that were not *paused*."""
    wanted = list(dict.fromkeys(names))
    resumed = [name for name in wanted if resume(name)]
    missing = [name for name in wanted if name not in resumed]
    if as_json:
        say_json({"resumed": resumed, "missing": missing})
    else:
        for name in resumed:
            say(f"{name} goes on")
    for name in missing:
        complain(f"{kind} {name!r} was not paused{did_you_mean(name, paused())}")
    if missing:
        raise typer.Exit(_MISSING)


def by_whom(pause: Pause) -> str:
    """Return who paused it, and why if that was said."""
    return f"by {pause.by}{f': {pause.reason}' if pause.reason else ''}"


def how_long(pause: Pause, now: datetime | None = None) -> str:
    return since(pause.since, now or SystemClock().now())


def check_options_follow(context: typer.Context) -> None:
    """Refuse options between the group and its command: these would be the group's, and not heard by the command."""
    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise InvalidValue(
            f"write the options after the command: `{context.command_path} {context.invoked_subcommand}`"
        )
