"""Commands that belong together, and a good word for a mistyped one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from mainspring.errors import InvalidValue, did_you_mean

MISTAKE = 2


class Group(TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not ctx.resilient_parsing:
            hint = did_you_mean(name, self.commands) or f"; `{ctx.command_path} --help` lists all commands"
            raise InvalidValue(f"no command is named {name!r}{hint}")
        return super().resolve_command(ctx, args)
