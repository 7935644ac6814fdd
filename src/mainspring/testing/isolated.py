"""An app on a database and a clock that belong to one test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from mainspring.app import Mainspring
from mainspring.clock import SystemClock
from mainspring.testing.clock import SettableClock


@contextmanager
def isolated(app: Mainspring, clock: SettableClock | None = None) -> Iterator[SettableClock]:
    """Point *app* and all its tasks at an empty SQLite file while the block lasts, and yield the clock of that file.

    The clock stands still until it is moved. Unless one is given, it starts at the present, so that due times which
    the code under test makes from the real time are not far off.
    """
    clock = clock or SettableClock(SystemClock().now())
    with tempfile.TemporaryDirectory(prefix="mainspring-") as directory:
        file = quote(str(Path(directory, "test.db")))
        with app.client.redirect(f"sqlite:///{file}?synchronous=normal", clock):
            yield clock
