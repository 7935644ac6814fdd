"""Transaction: what a handler writes and the settlement of its job, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mainspring.errors import LeaseLost, StoreError
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import Settlement
from mainspring.store.database import Database, Runner
from mainspring.store.journal import record_within
from mainspring.store.settle import apply

_in_block: ContextVar[bool] = ContextVar("mainspring_in_block", default=False)


def check_outside() -> None:
    """Refuse what would not be part of the block that the caller is in, whatever he thinks."""
    if _in_block.get():
        raise StoreError(
            "a job that is enqueued inside a transaction block would not be part of its transaction; "
            "make it part with using(conn=...) of the block's connection, or enqueue it before or after the block"
        )


@contextmanager
def transaction(db: Database, settlement: Callable[[], Settlement], lines: Sequence[LogLine]) -> Iterator[Any]:
    """See `protocol.Settles.transaction`."""
    if _in_block.get():
        raise StoreError("a transaction block can't stand inside another; its job ends with the first that does")
    decided: list[Settlement] = []
    topics: set[str] = set()
    with db.lend(lambda tx: topics.update(_settle(tx, decided[0], lines))) as connection:
        inside = _in_block.set(True)
        try:
            yield connection
        finally:
            _in_block.reset(inside)
        decided.append(settlement())
    db.wake(topics)


def _settle(tx: Runner, decided: Settlement, lines: Sequence[LogLine]) -> set[str]:
    record_within(tx, lines, [])
    settled, topics = apply(tx, [decided])
    if not settled:
        raise LeaseLost(
            f"job {decided.job_id} is no longer held under fence {decided.fence}: its lease has ended, and another "
            "worker may hold it; nothing that was written in this transaction is kept"
        )
    return topics
