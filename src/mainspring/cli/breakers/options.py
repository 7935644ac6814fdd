"""Options that the commands of `mainspring breakers` share."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.model.breaker import TRIP

BreakerKey = Annotated[
    str, typer.Argument(metavar="KEY", help="The key of the breaker, with the arguments of the jobs in their places.")
]
Lasting = Annotated[str, typer.Option("--for", metavar="LENGTH", help="How long nothing starts, as in 10m.")]
AllAtOnce = Annotated[bool, typer.Option("--all", help="Let all jobs that wait for it go on at once.")]
DEFAULT_LASTING = f"{TRIP.seconds // 60}m"
