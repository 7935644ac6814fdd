"""What the worker asks of an executor, and what an executor asks of the worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import Outcome
from mainspring.worker.context import Context
from mainspring.worker.held import Held


class Executor(Protocol):
    """Runs handlers, each attempt once, and reports what each came to."""

    @property
    def room(self) -> int:
        """How many more jobs it would take now."""
        ...

    @property
    def waiting(self) -> int:
        """How many jobs it was given and has not started."""
        ...

    def put(self, taken: Sequence[Held]) -> None:
        """Run these, in this order as far as there are slots."""
        ...

    def take_back(self) -> list[Held]:
        """Return all that it has not started; it will not start them any more."""
        ...

    def abandon(self, held: Held) -> None:
        """Stop waiting for an attempt that does not end, and free its slot."""
        ...

    def close(self) -> None:
        """End: nobody waits any more for what still runs, and what can be ended is. Returns soon."""
        ...


class Watcher(Protocol):
    """Ends attempts that take too long."""

    def begin(self, held: Held) -> None: ...

    def end(self, held: Held) -> None: ...


class Host(Protocol):
    """The worker, as its executors see it. All calls may come from any thread."""

    @property
    def watch(self) -> Watcher: ...

    def hungry(self, executor: Executor) -> None:
        """Take note that *executor* may have room."""
        ...

    def context(self, held: Held) -> Context:
        """Return the context for an attempt that begins now."""
        ...

    def record(self, entry: LogLine | Progress) -> None:
        """Have *entry* written, before the settlement of an attempt that ends later."""
        ...

    def flush(self) -> None:
        """Wait until what was recorded so far is written, for some seconds at most."""
        ...

    def succeeded(self, held: Held) -> None:
        """Take note that the success of *held* is recorded already."""
        ...

    def charge(self, held: Held) -> None:
        """Count a loss in advance if the job of this attempt, which begins now, was lost before; raise if it can't."""
        ...

    def ended(self, held: Held, outcome: Outcome | None) -> None:
        """Take note of what the attempt came to; None when it can't be recorded."""
        ...


def take_all(queue: deque[Held]) -> list[Held]:
    """Empty *queue*, from which other threads take at the same time, and return what was left in it."""
    taken: list[Held] = []
    while queue:
        try:
            taken.append(queue.pop())
        except IndexError:
            break  # another was quicker
    return taken
