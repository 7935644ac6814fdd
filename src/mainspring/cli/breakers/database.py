"""The breakers that a command looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.app import Mainspring
from mainspring.breakers import Breakers
from mainspring.cli.database import existing


@contextmanager
def breakers_at(url: str) -> Iterator[Breakers]:
    """Lend the breakers of the database at *url*, which must be there."""
    with existing(url), closing(Mainspring(url)) as app:
        yield app.breakers
