"""The commands of `mainspring secrets`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.secrets.control import remove, set_secret
from mainspring.cli.secrets.list import list_secrets
from mainspring.cli.secrets.rotate import print_new_key, rotate

secrets = typer.Typer(cls=Group)
secrets.command("set")(set_secret)
secrets.command("list")(list_secrets)
secrets.command()(remove)
secrets.command()(rotate)
secrets.command("new-key")(print_new_key)


@secrets.callback(invoke_without_command=True)
def _secrets(context: typer.Context, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the names of what is kept secret for jobs. Or set, remove or seal it anew. Values are never shown."""
    if context.invoked_subcommand is None:
        list_secrets(team, url, as_json)
    else:
        check_options_follow(context)
