"""Arguments and options that the commands of `mainspring alerts` share."""

from __future__ import annotations

from typing import Annotated

import typer

AlertId = Annotated[str, typer.Argument(metavar="ID", help="The id of the alert.")]
