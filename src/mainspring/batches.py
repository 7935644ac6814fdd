"""Batches: what many ask for at the same time, done in one go.

A request goes out at once when none is under way; what is asked for meanwhile forms the next batch. So a lone request
is not kept waiting, and a flood needs few commits, without any timer.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from mainspring.errors import StoreUnavailable
from mainspring.service import Loop, close

T = TypeVar("T")
R = TypeVar("R")

_LAST_BATCH = 5.0


class Batches(Generic[T, R]):
    """A thread that does the work of all who ask. *work* returns for each item what comes of it, or its error."""

    def __init__(self, name: str, work: Callable[[Sequence[T]], Sequence[R | Exception]], most: int = 500) -> None:
        self._work = work
        self._most = most
        self._asked: deque[tuple[T, Future[R] | asyncio.Future[R]]] = deque()
        self._loop = Loop(name, self._once)

    def start(self) -> None:
        self._loop.start()

    def ask(self, item: T) -> Future[R]:
        """Have *item* done; the future tells what came of it. Called by any thread."""
        told: Future[R] = Future()
        self._put(item, told)
        return told

    def aask(self, item: T) -> asyncio.Future[R]:
        """Do as `ask` does, for a coroutine; all of the loop that is used by the first."""
        told: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._put(item, told)
        return told

    def close(self) -> None:
        """End when what is under way is done, and tell whoever is left that nothing came of it."""
        close([self._loop], _LAST_BATCH)
        left = [self._asked.popleft() for _ in range(len(self._asked))]
        _deliver([(told, StoreUnavailable("the server is stopping")) for _, told in left])

    def _put(self, item: T, told: Future[R] | asyncio.Future[R]) -> None:
        if self._loop.ending:
            raise StoreUnavailable("the server is stopping")
        self._asked.append((item, told))
        self._loop.wake()

    def _once(self) -> float:
        batch = [self._asked.popleft() for _ in range(min(self._most, len(self._asked)))]
        if batch:
            self._do(batch)
        return 0 if self._asked else math.inf

    def _do(self, batch: Sequence[tuple[T, Future[R] | asyncio.Future[R]]]) -> None:
        try:
            came: Sequence[R | Exception] = self._work([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are to hear of it
            came = [error] * len(batch)
        news = [(told, one) for (_, told), one in zip(batch, came, strict=True)]
        awaited = next((told for told, _ in news if isinstance(told, asyncio.Future)), None)
        if awaited is None:
            _deliver(news)
        else:
            # All at once: to wake the loop for each would cost it more than to answer them.
            awaited.get_loop().call_soon_threadsafe(_deliver, news)


def _deliver(news: Sequence[tuple[Future[R] | asyncio.Future[R], R | Exception]]) -> None:
    for told, came in news:
        if told.cancelled():
            continue
        if isinstance(came, Exception):
            told.set_exception(came)
        else:
            told.set_result(came)
