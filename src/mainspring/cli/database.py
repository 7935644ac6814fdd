"""The database that a command looks into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mainspring.client import Client
from mainspring.errors import StoreError
from mainspring.store import Store, open_store
from mainspring.store.open import sqlite_file


@contextmanager
def existing(url: str) -> Iterator[Store]:
    """Open the database at *url* while the block lasts; a SQLite file must be there, for looking makes none."""
    _check_there(url)
    with closing(open_store(url)) as store:
        yield store


@contextmanager
def client_at(url: str, team: str | None) -> Iterator[Client]:
    """Lend a client of the database at *url*, which must be there likewise; bound to a *team* if one is named."""
    _check_there(url)
    with closing(Client(url)) as client:
        yield client if team is None else client.within(team)


def _check_there(url: str) -> None:
    file = sqlite_file(url)
    if file is not None and not os.path.exists(file):
        raise StoreError(
            f"there is no database {file} yet; name another by --url or MAINSPRING_URL, or enqueue a first job"
        )
