"""`mainspring limits release`."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.errors import did_you_mean
from mainspring.model.limits import check_limit_key
from mainspring.model.text import counted

LimitKey = Annotated[
    str, typer.Argument(metavar="KEY", help="The key of the limit, with the arguments of the jobs in their places.")
]

_MISSING = 1


def release(key: LimitKey, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make all jobs ready that wait for a limit, because it was removed or changed. One that is still there holds."""
    check_limit_key(key)
    with app_at(url) as app:
        limits = app.limits
        note(app, "limit.release", [key])
        released = limits.release(key)
        near = [] if released else [one.key for one in limits.list() if one.waiting]
    if as_json:
        say_json({"key": key, "released": released})
    elif released:
        say(f"{key}: {counted(released, 'job')} made ready")
    if not released:
        complain(f"no job that could start waits for limit {key!r}{did_you_mean(key, near)}")
        raise typer.Exit(_MISSING)
