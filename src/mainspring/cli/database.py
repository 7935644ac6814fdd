"""The database that a command looks into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.errors import StoreError
from mainspring.store import Store, open_store
from mainspring.store.open import sqlite_file


@contextmanager
def existing(url: str) -> Iterator[Store]:
    """Open the database at *url* while the block lasts; a SQLite file must be there, for looking makes none."""
    file = sqlite_file(url)
    if file is not None and not os.path.exists(file):
        raise StoreError(
            f"there is no database {file} yet; name another by --url or MAINSPRING_URL, or enqueue a first job"
        )
    with closing(open_store(url)) as store:
        yield store
