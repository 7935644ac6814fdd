"""The commands of `mainspring retention`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.retention.control import remove_rule, set_rule
from mainspring.cli.retention.list import list_rules

retention = typer.Typer(cls=Group)
retention.command("list")(list_rules)
retention.command("set")(set_rule)
retention.command("remove")(remove_rule)


@retention.callback(invoke_without_command=True)
def _retention(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List how long finished jobs are kept, by team, queue and state. Or say so."""
    if context.invoked_subcommand is None:
        list_rules(url, as_json)
    else:
        check_options_follow(context)
