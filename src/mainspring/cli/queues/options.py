"""Options that the commands of `mainspring queues` share."""

from __future__ import annotations

from typing import Annotated

import typer

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue.")]
QueueNames = Annotated[list[str], typer.Argument(metavar="QUEUE", help="Names of queues.")]
Ageing = Annotated[
    str,
    typer.Option(
        "--ageing",
        metavar="LENGTH|off",
        help="How much waiting time a point of priority is worth, as in 10m; off for strict priority.",
    ),
]

NOBODY = "-"
TeamOrNobody = Annotated[
    str, typer.Argument(metavar=f"TEAM|{NOBODY}", help=f"The name of the team; {NOBODY} makes the queue everybody's.")
]
