"""The commands of `mainspring tokens`."""

from __future__ import annotations

import typer

from mainspring.cli.group import Group
from mainspring.cli.tokens.control import create, revoke
from mainspring.cli.tokens.list import list_tokens

tokens = typer.Typer(cls=Group, no_args_is_help=True, help="Make, list and revoke the tokens that let others in.")
tokens.command()(create)
tokens.command("list")(list_tokens)
tokens.command()(revoke)
