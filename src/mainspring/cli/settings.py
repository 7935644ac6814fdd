"""`mainspring settings`: what the environment can say, what it says, and what is so where it says nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import typer

from mainspring.cli.afar import TOKEN
from mainspring.cli.options import AsJson
from mainspring.cli.output import cell, listing, say_json, show, warn, width, without_passwords
from mainspring.errors import did_you_mean
from mainspring.keys import KEY_FILE, KEYS
from mainspring.notify.delivery import BASE_URL, MAIL_FROM, SMTP
from mainspring.outbound.outbound import ALLOW

PREFIX = "MAINSPRING_"

_WITHOUT_OPTION = {
    TOKEN: "What is shown to a server whose address --url names.",
    "MAINSPRING_ENCRYPT": "1 to seal the arguments and results of all tasks that do not say otherwise.",
    KEYS: "The keys by which secrets and encrypted jobs are sealed.",
    KEY_FILE: "The file that holds these keys; a SQLite database has one beside it unless another is named.",
    SMTP: "The mail server, for notifications.",
    MAIL_FROM: "From whom mail of notifications comes.",
    BASE_URL: "Where people reach the dashboard, for links in what they are told.",
    ALLOW: "Hosts and networks to which jobs may send requests though they are not public.",
    "MAINSPRING_METRICS_TOKEN": "What Prometheus shows to be let in to the metrics.",
}
"""What is read where it is needed, and no option stands for: most are no business of a list of processes."""

_INTERNAL = {"MAINSPRING_LINE", "MAINSPRING_JOB_ID", "MAINSPRING_ATTEMPT"}
"""What processes of ours tell each other."""

_WIDE = 110
"""Columns from which there is room to say what each is about."""

_SECRETS = ("_KEYS", "_TOKEN", "_SECRET")
"""How names end whose values are shown to nobody."""


@dataclass
class Setting:
    """What can be set by one variable of the environment."""

    name: str
    about: str
    default: str | None = None
    option: str | None = None
    commands: list[str] = field(default_factory=list)

    @property
    def said(self) -> str | None:
        """What the environment says; nothing where it says an empty text, as for the options."""
        return os.environ.get(self.name) or None

    @property
    def value(self) -> str | None:
        """What is so, as far as it may be shown."""
        if self.said is None:
            return self.default
        return "***" if self.name.endswith(_SECRETS) else without_passwords(self.said)

    @property
    def origin(self) -> str:
        if self.said is not None:
            return "environment"
        return "not set" if self.default is None else "default"


def settings(context: typer.Context, as_json: AsJson = False) -> None:
    """List what the environment can say, and where each value comes from. An option goes before it."""
    found = known(context.find_root().command)
    if as_json:
        say_json({"settings": [_document(one) for one in found]})
    else:
        _show(found)
    names = [one.name for one in found]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in (*names, *_INTERNAL):
            warn(f"{name} is set and means nothing{did_you_mean(name, names)}")


def known(program: Any) -> list[Setting]:
    """Return all settings of *program*, by name: one for each variable, however many commands look at it."""
    found = {name: Setting(name, about) for name, about in _WITHOUT_OPTION.items()}
    for path, option in _options(program):
        setting = found.setdefault(option.envvar, Setting(option.envvar, option.help or ""))
        setting.default, setting.option = setting.default or _shown(option.default), option.opts[0]
        setting.commands.append(path)
    return [found[name] for name in sorted(found)]


def _options(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for option in command.params:
        if option.envvar:
            yield path, option
    for name, inner in getattr(command, "commands", {}).items():
        yield from _options(inner, f"{path} {name}".strip())


def _shown(default: object) -> str | None:
    return None if default is None or callable(default) else str(default)


def _show(found: list[Setting]) -> None:
    table = listing()
    table.add_column("Setting", no_wrap=True)
    table.add_column("Value", overflow="fold")
    table.add_column("From", no_wrap=True)
    wide = width() >= _WIDE
    if wide:
        table.add_column("About", overflow="fold")
    for one in found:
        origin = cell(one.origin, "green" if one.said is not None else "dim")
        about = [cell(one.about.partition(". ")[0], "dim")] if wide else []
        table.add_row(cell(one.name), cell(one.value or ""), origin, *about)
    show(table)


def _document(one: Setting) -> dict[str, object]:
    return {
        "name": one.name,
        "value": one.value,
        "from": one.origin,
        "option": one.option,
        "commands": one.commands,
        "about": one.about,
    }
