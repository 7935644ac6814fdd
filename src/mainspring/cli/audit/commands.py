"""The commands of `mainspring audit`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.audit.list import list_audit
from mainspring.cli.audit.verify import verify
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow

audit = typer.Typer(cls=Group)
audit.command("list")(list_audit)
audit.command()(verify)


@audit.callback(invoke_without_command=True)
def _audit(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List who asked for what, the last first. Or see whether that is all of it."""
    if context.invoked_subcommand is None:
        list_audit(url=url, as_json=as_json)
    else:
        check_options_follow(context)
