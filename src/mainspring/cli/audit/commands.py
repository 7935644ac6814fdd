"""The commands of `mainspring audit`."""

from __future__ import annotations

import typer

from mainspring.cli.audit.list import list_audit
from mainspring.cli.audit.verify import verify
from mainspring.cli.group import Group

audit = typer.Typer(cls=Group, no_args_is_help=True, help="Look at who asked for what, and whether that is all of it.")
audit.command("list")(list_audit)
audit.command()(verify)
