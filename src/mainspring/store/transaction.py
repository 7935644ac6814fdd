"""Transaction: what a handler writes and the settlement of its job, or the record of its step, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from uuid import UUID

from mainspring.errors import StoreError
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import Settlement
from mainspring.store.database import Database, Runner
from mainspring.store.journal import record_within
from mainspring.store.notify import Ruled
from mainspring.store.settle import apply
from mainspring.store.steps import lost
from mainspring.store.steps import record_within as record_step

Finish = Callable[[Runner], set[str]]
"""Writes what belongs to a block in its transaction, and returns the topics to wake afterwards."""

_in_block: ContextVar[bool] = ContextVar("mainspring_in_block", default=False)


def check_outside() -> None:
    """Refuse what would not be part of the block that the caller is in, whatever he thinks."""
    if _in_block.get():
        raise StoreError(
            "a job that is enqueued inside a transaction block would not be part of its transaction; "
            "make it part with using(conn=...) of the block's connection, or enqueue it before or after the block"
        )


def transaction(
    db: Database, settlement: Callable[[], Settlement], lines: Sequence[LogLine], ruled: Ruled
) -> AbstractContextManager[Any]:
    """See `protocol.Settles.transaction`."""
    some_rules = ruled()  # asked before, for within the block the connection is lent
    return _block(db, lambda: partial(_settle, decided=settlement(), ruled=some_rules), lines)


def step_transaction(
    db: Database, job_id: UUID, fence: int, step: tuple[str, str], lines: Sequence[LogLine]
) -> AbstractContextManager[Any]:
    """See `protocol.Steps.step_transaction`."""
    name, result = step

    def finish(tx: Runner) -> set[str]:
        if not record_step(tx, job_id, fence, name, result):
            raise lost(job_id, fence)
        return set()

    return _block(db, lambda: finish, lines)


@contextmanager
def _block(db: Database, finish: Callable[[], Finish], lines: Sequence[LogLine]) -> Iterator[Any]:
    """Lend the block a connection, and at its end write *lines* and what *finish* returns then in its transaction."""
    if _in_block.get():
        raise StoreError("a transaction block can't stand inside another; its job ends with the first that does")
    decided: list[Finish] = []
    topics: set[str] = set()

    def end(tx: Runner) -> None:
        record_within(tx, lines, [])
        topics.update(decided[0](tx))

    with db.lend(end) as connection:
        inside = _in_block.set(True)
        try:
            yield connection
        finally:
            _in_block.reset(inside)
        decided.append(finish())
    db.wake(topics)


def _settle(tx: Runner, decided: Settlement, *, ruled: bool) -> set[str]:
    settled, topics = apply(tx, [decided], ruled=ruled)
    if not settled:
        raise lost(decided.job_id, decided.fence)
    return topics
