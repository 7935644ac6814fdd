"""The commands of `mainspring breakers`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.breakers.control import reset, trip
from mainspring.cli.breakers.list import list_breakers
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow

breakers = typer.Typer(cls=Group)
breakers.command()(trip)
breakers.command()(reset)


@breakers.callback(invoke_without_command=True)
def _breakers(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the breakers: which are open, why, until when, and what waits for them. Or trip and reset them."""
    if context.invoked_subcommand is None:
        list_breakers(url, as_json)
    else:
        check_options_follow(context)
