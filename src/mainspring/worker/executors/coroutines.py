"""Handlers that are coroutine functions, thousands at once on one loop in one thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from mainspring.clock import SystemClock
from mainspring.model.outcome import Outcome
from mainspring.traces import Tracing, tracing
from mainspring.worker.execute import call, check_in_time, ending, success, untold
from mainspring.worker.executors.executor import Host
from mainspring.worker.held import Held, current

_FAREWELL = 1.0
"""Seconds that coroutines have to end with their loop."""

_PAUSE = 0.1
"""Seconds before a loop that failed runs on: one that fails at once again is not to fill the log."""

log = logging.getLogger("mainspring.worker")


class CoroutineExecutor:
    """A loop that runs up to *slots* attempts side by side. What it is given starts at once."""

    def __init__(self, slots: int, host: Host) -> None:
        self._slots = slots
        self._host = host
        self._clock = SystemClock()
        self._running: dict[Held, asyncio.Task[None]] = {}
        self._put = 0
        self._started = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._making = threading.Lock()
        self._closing = threading.Event()
        self._tracing: Tracing | None = None

    @property
    def room(self) -> int:
        return self._slots - len(self._running) - self.waiting

    @property
    def waiting(self) -> int:
        return self._put - self._started

    def put(self, taken: Sequence[Held]) -> None:
        self._tracing = tracing()
        self._put += len(taken)
        self._running_loop().call_soon_threadsafe(self._start, taken)

    def take_back(self) -> list[Held]:
        return []

    def abandon(self, held: Held) -> None:
        self._running.pop(held, None)
        self._host.hungry(self)

    def close(self) -> None:
        self._closing.set()
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # a handler has stopped it just now, and it is closed
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(2 * _FAREWELL)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._making:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run_loop, args=(self._loop,), name="mainspring-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while not self._closing.is_set():
                self._run_on(loop)
            # To the last, a handler may stop the loop or try to end the process.
            with suppress(RuntimeError, SystemExit, KeyboardInterrupt):
                self._part_with(loop)
        finally:
            loop.close()

    def _run_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until it is stopped, by us or by a handler, which must not stop the others with it."""
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            # From a handler itself it is an outcome; but out of its sub-tasks and callbacks asyncio lets it through.
            log.exception("a coroutine wanted to end the process; going on")
        except BaseException:
            log.exception("the loop failed in a way that it should not; going on")
            self._closing.wait(_PAUSE)
        else:
            if not self._closing.is_set():
                log.warning("a coroutine stopped the loop that it shares with all others; going on")

    def _part_with(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell what did not end when it was told to once more, by the end of its loop."""
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_FAREWELL))
        loop.run_until_complete(loop.shutdown_asyncgens())

    def _start(self, taken: Sequence[Held]) -> None:
        assert self._loop is not None
        for held in taken:
            self._running[held] = self._loop.create_task(self._run(held))
        self._started += len(taken)

    async def _run(self, held: Held) -> None:
        current.set(held)  # in the context of this coroutine alone
        held.began = self._clock.steady()
        span = None if self._tracing is None else self._tracing.begin(held.job)
        try:
            if span is not None:
                span.enter()
            outcome = await self._attempt(held)
        except BaseException as error:  # noqa: BLE001 - a job that nobody reports would stay ours for ever
            outcome = untold(held.task, error, held.secrecy)
        if span is not None:
            span.end(outcome)
        self._running.pop(held, None)
        held.took = self._clock.steady() - held.began
        self._host.ended(held, outcome)
        self._host.hungry(self)

    async def _attempt(self, held: Held) -> Outcome | None:
        task = held.task
        asked: list[BaseException] = []  # kept here, because a pause may be taken back while the coroutine cleans up

        def interrupt(stop: BaseException | None) -> None:
            if stop is not None and stop not in asked:
                asked.append(stop)
                self._interrupt(held)

        held.interrupt = interrupt
        if task.timeout is not None:
            self._host.watch.begin(held)
        try:
            held.check()
            if held.job.losses:
                await asyncio.to_thread(self._host.charge, held)
            check_in_time(held.job, held.start_by)
            context = self._host.context(held) if task.context else None
            result = await call(task, held.payload, context)
        except asyncio.CancelledError as error:
            return ending(task, held.stop or (asked[-1] if asked else error), held.stop, held.details, held.secrecy)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome, and the loop goes on
            return ending(task, error, held.stop, held.details, held.secrecy)
        finally:
            held.interrupt = None
            if task.timeout is not None:
                self._host.watch.end(held)
        return success(task, result, context, held.secrecy)

    def _interrupt(self, held: Held) -> None:
        """Cancel the attempt's coroutine. Called by any thread."""
        running = self._running.get(held)
        if running is not None and self._loop is not None:
            with suppress(RuntimeError):  # the worker has stopped, and closed the loop
                self._loop.call_soon_threadsafe(running.cancel)
