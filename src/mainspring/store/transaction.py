"""Transaction: what a handler writes and the settlement of its job, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mainspring.errors import LeaseLost
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import Settlement
from mainspring.store.database import Database, Runner
from mainspring.store.journal import record_within
from mainspring.store.settle import apply


@contextmanager
def transaction(db: Database, settlement: Callable[[], Settlement], lines: Sequence[LogLine]) -> Iterator[Any]:
    """See `protocol.Settles.transaction`."""
    decided: list[Settlement] = []
    topics: set[str] = set()
    with db.lend(lambda tx: topics.update(_settle(tx, decided[0], lines))) as connection:
        yield connection
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
