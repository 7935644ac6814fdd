"""What the store needs of a database: the seam between the steps, written once, and the two dialects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

Row = tuple[Any, ...]
T = TypeVar("T")

DUE = "@due"
"""The wake topic of whoever waits for the next due time. Other topics are queue names, which can't begin with @."""

FIRE = "@fire"
"""The wake topic of whoever fires schedules: one of them may be due sooner than was known."""

RELEASE = "@release"
"""The wake topic of whoever releases jobs: some wait for a limit, perhaps not for long."""

WISH = "@wish"
"""The wake topic of whoever runs jobs: a person wants something of one of them, or no longer wants it."""

LEFT_TO_US = (
    "a transaction block must leave commit and rollback to Mainspring, which does either together with the job; "
    "the job was not settled"
)
"""Said to a block that was lent a connection and ended its transaction by itself."""


class Runner(Protocol):
    """Runs named queries on one connection."""

    @property
    def in_doubt(self) -> bool:
        """Whether some of the work may be done already.

        An earlier try lost its connection and may have been committed all the same, or it met a value that must be
        unique and was taken, perhaps by such a try.
        """
        ...

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        """Run the query named *query* and return its rows.

        Values come back as the model has them: UUID, aware datetime in UTC, timedelta, JobState.
        """
        ...


class Listener(Protocol):
    """Waits for wakes. Not safe to share between threads."""

    def wait(self, timeout: float) -> frozenset[str]:
        """Return the topics of which there may be news as soon as there are any, or none after *timeout* seconds.

        That is all of the listener's topics when it can't tell which. Closing the listener ends the wait with none;
        to wait on a closed one is an error. A hint only: news can be missed, and there may be none after all, so
        poll as well.
        """
        ...

    def close(self) -> None:
        """Free what the listener holds."""
        ...


class Database(Protocol):
    """A database of one dialect.

    No statement waits for ever. A call that loses its connection is tried again on a new one until its deadline;
    then it raises StoreUnavailable.
    """

    @property
    def migrations(self) -> Sequence[Migration]:
        """The steps of this dialect's schema, in order."""
        ...

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        """Run one query as a transaction of its own, in one round trip."""
        ...

    def read(self, query: str, /, **parameters: object) -> list[Row]:
        """Run one query that only looks, without waiting for a writer."""
        ...

    def attempt(self, work: Callable[[Runner], T]) -> T:
        """Call *work*, whose every query is a transaction of its own, again and again until it was not disturbed."""
        ...

    def transact(self, work: Callable[[Runner], T]) -> T:
        """Call *work* in one transaction, likewise."""
        ...

    def lend(self, finish: Callable[[Runner], T]) -> AbstractContextManager[Any]:
        """Lend the block the driver's connection in a transaction, and call *finish* in it before the commit.

        See `protocol.Settles.transaction` for what is promised. Nothing of it is tried again, except *finish*, where
        somebody was in its way.
        """
        ...

    def join(self, connection: Any, work: Callable[[Runner], T], topics: Collection[str], *, steps: bool) -> T:
        """Call *work* on a caller's own connection, in his transaction or, where none is open, as his driver has it.

        What *work* does in several *steps* is undone as a whole when it fails. Nothing is tried again, and what the
        driver raises is passed on: the transaction is the caller's, and so is what to do about it. Listeners of
        *topics* are told to look again about when he may have committed.
        """
        ...

    def wake(self, topics: Collection[str]) -> None:
        """Tell listeners of these topics to look again. Returns at once."""
        ...

    def listen(self, topics: Collection[str]) -> Listener:
        """Return a listener for these topics."""
        ...

    def version(self) -> int:
        """Return the number of the last migration applied, 0 if there was none."""
        ...

    def in_use_by_others(self) -> bool:
        """Return whether tables of somebody else are here, so that ours must not be added without being asked."""
        ...

    def apply(self, migrations: Sequence[Migration]) -> list[Migration]:
        """Apply those of *migrations* that are not applied yet, under a lock, all or none, and return them."""
        ...

    def probe(self) -> Probe:
        """Find out what this database gives."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True)
class Migration:
    """One numbered step of the schema."""

    number: int
    name: str
    script: str


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a database gives, for `doctor`. `problems` names each thing that is wrong and the way out."""

    kind: str
    version: str
    location: str
    durability: str
    commit: timedelta
    clock: datetime
    clock_difference: timedelta
    problems: tuple[str, ...]
