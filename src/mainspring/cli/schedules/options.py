"""Options that the commands of `mainspring schedules` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from mainspring.schedules import Schedules

if TYPE_CHECKING:
    from mainspring.remote.client import RemoteSchedules

AllSchedules: TypeAlias = "Schedules | RemoteSchedules"

ScheduleId = Annotated[str, typer.Argument(metavar="ID", help="The schedule's id.")]
ScheduleIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of schedules.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
