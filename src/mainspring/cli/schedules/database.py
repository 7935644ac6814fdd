"""The schedules that a command looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.app import Mainspring
from mainspring.cli.apps import load_app
from mainspring.cli.database import existing
from mainspring.schedules import Schedules


@contextmanager
def schedules_at(url: str) -> Iterator[Schedules]:
    """Lend the schedules of the database at *url*, which must be there."""
    with existing(url), closing(Mainspring(url)) as app:
        yield app.schedules


def app_or_sender(name: str | None, url: str | None) -> Mainspring:
    """Return the app that the user named, or else one without tasks, which may speak of any."""
    if name:
        return load_app(name, url)
    sender = Mainspring(url)
    if url is not None:
        sender.client.url = url  # even an empty one, which is a mistake to be named
    return sender
