"""The limits that a command looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.app import Mainspring
from mainspring.cli.database import existing
from mainspring.limits import Limits


@contextmanager
def limits_at(url: str) -> Iterator[Limits]:
    """Lend the limits of the database at *url*, which must be there."""
    with existing(url), closing(Mainspring(url)) as app:
        yield app.limits
