"""The queues that a command looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.app import Mainspring
from mainspring.cli.database import existing
from mainspring.queues import Queues


@contextmanager
def queues_at(url: str) -> Iterator[Queues]:
    """Lend the queues of the database at *url*, which must be there."""
    with existing(url), closing(Mainspring(url)) as app:
        yield app.queues
