"""Options of the commands on secrets."""

from __future__ import annotations

from typing import Annotated

import typer

Team = Annotated[
    str | None,
    typer.Option("--team", envvar="MAINSPRING_TEAM", metavar="TEAM", help="The team whose secrets are meant."),
]
