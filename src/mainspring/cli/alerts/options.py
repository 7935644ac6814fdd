"""Arguments and options that the commands of `mainspring alerts` share."""

from __future__ import annotations

from typing import Annotated

import typer

AlertId = Annotated[str, typer.Argument(metavar="ID", help="The id of the alert.")]
Team = Annotated[
    str | None,
    typer.Option("--team", metavar="NAME", help="Of this team, whose jobs alone it looks at; else of all."),
]
