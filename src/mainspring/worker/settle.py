"""Settle: write what became of jobs, in groups that form by themselves.

A settlement goes out at once when none is in flight; what finishes meanwhile forms the next batch. So a lone job
settles immediately, and a flood needs few commits, without any timer.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from mainspring.clock import Clock
from mainspring.errors import LeaseLost, StoreFull, StoreReadOnly, StoreUnavailable
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import Settlement, settle
from mainspring.model.outcome import Failed
from mainspring.model.text import counted
from mainspring.service import Loop
from mainspring.store import Store
from mainspring.tally import Tally
from mainspring.worker.count import Ended, count
from mainspring.worker.failure import failure_of
from mainspring.worker.held import Held, Holding

BATCH = 500
_FLUSH = 5.0
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
_PASSING = (StoreUnavailable, StoreFull, StoreReadOnly)
"""What may cure itself: the answer is to try again, for as long as it takes."""

log = logging.getLogger("mainspring.worker")

T = TypeVar("T")


class Settler:
    """Writes settlements, and before them what the attempts had to say."""

    def __init__(self, store: Store, holding: Holding, clock: Clock, tally: Tally) -> None:
        self._store = store
        self._holding = holding
        self._clock = clock
        self._tally = tally
        self._ended: deque[Ended] = deque()
        self._lines: deque[LogLine] = deque()
        self._progress: dict[UUID, Progress] = {}
        self._flushes: deque[threading.Event] = deque()
        self._writing = False
        self._giving_up = threading.Event()
        self.loop = Loop("settle", self._write)

    def put(self, held: Held, settlement: Settlement) -> None:
        """Have *settlement* written. Called by any thread."""
        self._ended.append((held, settlement))
        self.loop.wake()

    def record(self, entry: LogLine | Progress) -> None:
        """Have *entry* written, before any settlement that is put later. Called by any thread."""
        if isinstance(entry, Progress):
            self._progress[entry.job_id] = entry  # the latest will do
        else:
            self._lines.append(entry)
        self.loop.wake()

    def flush(self) -> None:
        """Wait until what was recorded so far is written, for a while at most. Called by any thread."""
        flushed = threading.Event()
        self._flushes.append(flushed)
        self.loop.wake()
        flushed.wait(_FLUSH)

    def finish(self, timeout: float) -> bool:
        """Write what is left, for at most *timeout* seconds, and end; return whether all of it was written."""
        give_up = self._clock.steady() + timeout
        # In this order: what is being written has left its queue by then.
        while (unwritten := self._waiting or self._writing) and self._clock.steady() < give_up:
            self._clock.sleep(0.005)
        self._giving_up.set()
        self.loop.end()
        return not unwritten

    def _write(self) -> float:
        self._writing = True
        try:
            # Taken in this order: an entry is put before the settlement of its attempt, or before a flush.
            ended = _take(self._ended, BATCH)
            flushes = _take(self._flushes, BATCH)
            self._record(_take(self._lines, len(self._lines)), _take_latest(self._progress))
            for flushed in flushes:
                flushed.set()
            self._settle(ended)
        finally:
            self._writing = False
        return 0 if self._waiting else math.inf

    @property
    def _waiting(self) -> bool:
        return bool(self._ended or self._lines or self._progress or self._flushes)

    def _settle(self, batch: list[Ended]) -> None:
        if not batch:
            return
        try:
            settled = self._patiently(lambda: self._store.settle([settlement for _, settlement in batch]))
        except Exception as error:  # noqa: BLE001 - whatever it is, a job must not stay ours for ever
            self._settle_alone(batch, error)
            return
        if settled is None:
            return
        for held, settlement in batch:
            self._holding.drop(held)
            if settlement.job_id not in settled:
                log.warning("job %s was no longer ours; what became of it here is not recorded", settlement.job_id)
        ours = batch if len(settled) == len(batch) else [ended for ended in batch if ended[1].job_id in settled]
        if came := settled.otherwise:
            ours = [(held, came.get(settlement.job_id, settlement)) for held, settlement in ours]
        if ours:
            count(self._tally, ours)

    def _settle_alone(self, batch: list[Ended], error: Exception) -> None:
        """Settle one by one what could not be settled together, and fail what can't be settled as it is."""
        if len(batch) > 1:
            for ended in batch:
                self._settle([ended])
            return
        ((held, settlement),) = batch
        log.error("what became of job %s can't be stored: %s", held.job.id, error)
        if settlement.result is not None or settlement.spawn:
            failure = failure_of(error, held.task.name, held.secrecy.redact)
            self._settle([(held, settle(held.job, Failed(failure, retryable=False)))])
        else:
            self._holding.drop(held)  # the next beats find it astray, and give it back

    def _record(self, lines: list[LogLine], progress: list[Progress]) -> None:
        entries: list[LogLine | Progress] = [*lines, *progress]
        if not entries:
            return
        try:
            kept = self._patiently(lambda: self._store.record(lines, progress))
        except Exception as error:  # noqa: BLE001 - nor may what jobs say keep them from being settled
            talkers = len({entry.job_id for entry in entries})
            log.error("what %s logged can't be stored: %s", counted(talkers, "job"), error)  # noqa: TRY400
            return
        if kept is None:
            return
        refused = [entry for entry in entries if entry.job_id not in kept]
        holding = self._holding.by_id() if refused else {}
        for entry in refused:
            held = holding.get(entry.job_id)
            if held is not None and held.job.fence == entry.fence:
                held.end(LeaseLost(f"another worker may hold job {entry.job_id} by now"))

    def _patiently(self, write: Callable[[], T]) -> T | None:
        """Return what *write* returns, tried until it is; None when the worker has given up meanwhile."""
        pauses = iter(_PAUSES)
        while True:
            try:
                return write()
            except _PASSING as error:
                self._tally.failed("settle")
                log.warning("can't write what became of jobs, trying on: %s", error)
            if self._giving_up.wait(next(pauses, _PAUSES[-1])):
                return None


def _take(queue: deque[T], most: int) -> list[T]:
    """Take up to *most* from the front of *queue*, from which no other thread takes."""
    return [queue.popleft() for _ in range(min(most, len(queue)))]


def _take_latest(progress: dict[UUID, Progress]) -> list[Progress]:
    return [progress.popitem()[1] for _ in range(len(progress))]
