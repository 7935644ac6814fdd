"""Options of `mainspring notifications`."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.cli.values import VEILED
from mainspring.model.channel import Event

RuleId = Annotated[str, typer.Argument(metavar="ID", help="The id of the notification.")]
Team = Annotated[
    str | None,
    typer.Option(
        "--team",
        envvar="MAINSPRING_TEAM",
        metavar="TEAM",
        help="The team whose jobs it is about; else the default one.",
    ),
]
To = Annotated[list[str] | None, typer.Option("--email", metavar="ADDRESS", help="Whom to mail. May be said again.")]
Hook = Annotated[str | None, typer.Option("--webhook", metavar="URL", help=f"Where to post. {VEILED}")]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="EVENT",
        help=f"What to tell: {', '.join(Event)}. May be said again; by default failure and recovered.",
        autocompletion=lambda: [str(event) for event in Event],
    ),
]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        envvar="MAINSPRING_WEBHOOK_SECRET",
        metavar="SECRET",
        help="With what to sign: secret://NAME, or the secret itself. May be said twice, for a rotation.",
    ),
]
