"""Readiness: whether the database answers, told soon even where it does not."""

from __future__ import annotations

import asyncio

from mainspring.app import Mainspring
from mainspring.errors import StoreUnavailable

_PATIENCE = 2.0
"""Seconds after which whoever asks is told that the database does not answer: he has other servers to go to."""


class Readiness:
    """Looks at the database for all who ask.

    A call waits longer for a database that is away. Those who ask meanwhile share it, or all threads would wait.
    """

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._look: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Raise what keeps the server from serving, if anything does."""
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(asyncio.to_thread(self._app.client.check))
            self._look.add_done_callback(_heard)
        done, _ = await asyncio.wait([self._look], timeout=_PATIENCE)
        if not done:
            raise StoreUnavailable(f"the database did not answer within {_PATIENCE:g} s")
        self._look.result()


def _heard(look: asyncio.Future[None]) -> None:
    """Take note of how it ended, for nobody may be waiting for it any more."""
    if not look.cancelled():
        look.exception()
