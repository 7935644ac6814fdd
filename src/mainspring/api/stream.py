"""The stream of changes: one look at the database feeds all clients of a server, each with what its team may see."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Sequence

from mainspring.app import Mainspring
from mainspring.changes import Changes, Look
from mainspring.errors import StoreError
from mainspring.model.change import Change
from mainspring.service import Loop, close

PERIOD = 0.25
"""Seconds between two looks, while anybody listens."""

_ROOM = 1_000
_LAST_LOOK = 5.0

log = logging.getLogger("mainspring.api")


class Listener:
    """One client: what it has not been sent yet, and whether something had to be left out."""

    def __init__(self, team: str | None) -> None:
        self.team = team
        self.closed = False
        self.begun = False  # whether it will be told of all that happens from now on
        self._waiting: deque[Change] = deque()
        self._skipped = False
        self._news = asyncio.Event()

    def tell(self, look: Look) -> None:
        """Take what a look has found for it; a client that is too slow loses what it has no room for."""
        mine = [change for change in look.changes if change.team == self.team]
        room = _ROOM - len(self._waiting)
        self._waiting.extend(mine[:room])
        self._skipped |= look.skipped or len(mine) > room
        if self._waiting or self._skipped:
            self._news.set()

    def begin(self) -> None:
        self.begun = True
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def take(self, patience: float) -> tuple[Sequence[Change], bool]:
        """Return what is there for it, waiting for something for so many seconds; and whether something is missing."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return [], False
        if not self.closed:
            self._news.clear()
        taken, skipped = list(self._waiting), self._skipped
        self._waiting.clear()
        self._skipped = False
        return taken, skipped


class Stream:
    """Looks for changes on a thread of its own while anybody listens, and tells all who do."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._changes, self._begun = app.changes(), False
        self._listeners: set[Listener] = set()
        self._told: asyncio.AbstractEventLoop | None = None
        self._loop = Loop("stream", self._look)
        self._closed = False

    def start(self) -> None:
        """Begin; called on the loop that serves."""
        self._told = asyncio.get_running_loop()
        self._loop.start()

    def close(self) -> None:
        close([self._loop], _LAST_LOOK)

    def hang_up(self) -> None:
        """Let all clients go; called on the loop that serves."""
        self._closed = True
        for listener in self._listeners:
            listener.close()

    def open(self, team: str | None) -> Listener:
        """Return a listener for the changes of *team*, as that is stored."""
        listener = Listener(team)
        listener.closed = self._closed
        if not self._listeners:
            # What happened while nobody listened is nobody's news; nor is what the first look finds.
            self._changes, self._begun = self._app.changes(), False
        self._listeners.add(listener)
        if self._begun:
            listener.begin()
        self._loop.wake()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def _look(self) -> float:
        if not self._listeners or self._told is None:
            return math.inf
        changes = self._changes
        try:
            look = changes.look()
        except StoreError as error:
            log.warning("can't look for changes, trying on: %s", error)
            return 4 * PERIOD
        if look.changes or look.skipped or not self._begun:
            self._told.call_soon_threadsafe(self._tell, look, changes)
        return PERIOD

    def _tell(self, look: Look, changes: Changes) -> None:
        begins = not self._begun and changes is self._changes
        self._begun |= begins
        for listener in self._listeners:
            if begins:
                listener.begin()
            listener.tell(look)
