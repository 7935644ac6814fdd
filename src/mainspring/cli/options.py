"""Options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

DEFAULT_URL = "sqlite:///mainspring.db"

Url = Annotated[
    str,
    typer.Option(
        "--url", envvar="MAINSPRING_URL", metavar="URL", help="The address of the database.", show_envvar=True
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
