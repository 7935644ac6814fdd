"""Runs a storm on both stores, one after the other, and tells what it came to."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.support.postgres import FAST_AND_LOOSE, PostgresServer, running_server


class Account(Protocol):
    """What a storm came to, and whether that is as it should be."""

    @property
    def balanced(self) -> bool: ...


def on_both_stores(storm: Callable[[str], Account]) -> None:
    on_both_stores_and_server(lambda url, _: storm(url))


def on_both_stores_and_server(storm: Callable[[str, PostgresServer | None], Account]) -> None:
    """Do so for a *storm* that stops and starts the server, where there is one."""
    with tempfile.TemporaryDirectory() as folder, running_server(FAST_AND_LOOSE) as server:
        for url, own in ((f"sqlite:///{Path(folder) / 'storm.db'}", None), (server.url(), server)):
            account = storm(url, own)
            told = "balanced" if account.balanced else "NOT BALANCED"
            sys.stdout.write(f"{url.partition(':')[0]} {account} {told}\n")
            sys.stdout.flush()
