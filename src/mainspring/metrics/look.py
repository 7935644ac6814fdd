"""Look: what the database says of the whole fleet, asked seldom enough that nobody can hurt it by asking often."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from mainspring.client import Client
from mainspring.clock import Clock
from mainspring.errors import StoreError
from mainspring.model.queue import Queue
from mainspring.store.protocol import Lags, LetterFilter

_KEPT = 2.0
_SHARE = 20
"""What was seen is kept for so many times as long as it took to see, and some seconds at least."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the database said at one moment."""

    queues: list[Queue]
    owners: Mapping[str, str]  # of queues that belong to a team, that team
    workers: int
    lost_workers: int
    lags: Lags
    dead_letters: int
    round_trip: timedelta
    version: int


class Look:
    """The latest view of one database. Safe from any thread: those that ask at the same time share the answer."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: View | None = None
        self._until = 0.0

    def view(self) -> View | None:
        """Return what was seen last, which may be seconds old; None when the database does not answer."""
        with self._lock:
            begun = self._clock.steady()
            if begun >= self._until:
                try:
                    self._seen = self._ask()
                except StoreError:
                    self._seen = None
                ended = self._clock.steady()
                self._until = ended + max(_KEPT, _SHARE * (ended - begun))
            return self._seen

    def _ask(self) -> View:
        store = self._client.store
        sessions = store.sessions()
        alive = sum(session.alive for session in sessions)
        sent = self._clock.steady()
        store.now()
        took = self._clock.steady() - sent
        return View(
            queues=store.queues(),
            owners=self._client.owners(),
            workers=alive,
            lost_workers=len(sessions) - alive,
            lags=store.lags(),
            dead_letters=store.dead_count(LetterFilter()),
            round_trip=timedelta(seconds=took),
            version=store.version(),
        )
