"""The schedules that a command looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.app import Mainspring
from mainspring.cli.database import existing
from mainspring.schedules import Schedules


@contextmanager
def schedules_at(url: str) -> Iterator[Schedules]:
    """Lend the schedules of the database at *url*, which must be there."""
    with existing(url), closing(Mainspring(url)) as app:
        yield app.schedules
