"""The commands of `mainspring tokens`."""

from __future__ import annotations

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.group import Group
from mainspring.cli.options import AsJson, Url
from mainspring.cli.pauses import check_options_follow
from mainspring.cli.tokens.control import create, revoke
from mainspring.cli.tokens.list import list_tokens

tokens = typer.Typer(cls=Group)
tokens.command()(create)
tokens.command("list")(list_tokens)
tokens.command()(revoke)


@tokens.callback(invoke_without_command=True)
def _tokens(context: typer.Context, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the tokens that let others in. Or make and revoke them."""
    if context.invoked_subcommand is None:
        list_tokens(url, as_json)
    else:
        check_options_follow(context)
