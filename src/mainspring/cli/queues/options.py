"""Options that the commands of `mainspring queues` share."""

from __future__ import annotations

from typing import Annotated

import typer

QueueNames = Annotated[list[str], typer.Argument(metavar="QUEUE", help="Names of queues.")]
