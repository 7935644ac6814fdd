"""What the commands of `mainspring dead` share: options, and the dead letters that they choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import typer

from mainspring.cli.apps import App
from mainspring.cli.ids import find
from mainspring.cli.note import note
from mainspring.dead import Chosen
from mainspring.errors import InvalidValue

GroupName = Annotated[
    str | None, typer.Argument(metavar="GROUP", help="The group: its fingerprint, or the beginning of it.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="ID", help="The id of a dead letter, whole or as a listing shows it; any number."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with each job.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before acting on many jobs.")]


def chosen_by(
    app: App, group: str | None, ids: Sequence[str] | None, queue: str | None, task: str | None
) -> tuple[Chosen, int]:
    """Return which dead letters a command means, and how many these are."""
    if bool(ids) == (group is not None or queue is not None or task is not None):
        raise InvalidValue(
            "expected the dead letters either by GROUP, --queue or --task, or by --id, "
            f"got {'both' if ids else 'neither'}"
        )
    if ids:
        found: list[UUID | str] = [find(app, text).id for text in ids]
        return {"ids": found}, len(found)
    # Whoever is asked says yes to these: others may die before he does.
    letters, finished_until = app.dead.meant(group, queue, task)
    return {"group": group, "queue": queue, "task": task, "finished_until": finished_until}, letters


def note_letters(app: App, verb: str, chosen: Chosen, count: int, reason: str | None) -> None:
    """Put on record what is about to be done with dead letters."""
    how = {name: chosen.get(name) for name in ("group", "queue", "task")}
    targets: list[str | None] = [str(one) for one in chosen.get("ids") or ()] or [None]
    note(app, f"dead.{verb}", targets, found=count, reason=reason, **how)
