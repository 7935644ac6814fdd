"""Options that the commands of `mainspring schedules` share."""

from __future__ import annotations

from typing import Annotated

import typer

ScheduleId = Annotated[str, typer.Argument(metavar="ID", help="The schedule's id.")]
ScheduleIds = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of schedules.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
