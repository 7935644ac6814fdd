"""The commands of `mainspring limits`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.limits.control import release
from mainspring.cli.limits.list import list_limits
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow

limits = typer.Typer(cls=Group)
limits.command()(release)


@limits.callback(invoke_without_command=True)
def _limits(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the limits: what they allow, what has a slot, and what waits. Or release what waits."""
    if context.invoked_subcommand is None:
        list_limits(url, as_json)
    else:
        check_options_follow(context)
