"""Crowds: how many may have something lasting at the same time, such as a stream, so that nobody has all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from mainspring.api.problems import Problem


class Crowd:
    """Counts who stays. Used from the server's loop only."""

    def __init__(self, what: str, each: int, most: int) -> None:
        """Let *each* have so many, and all together *most*."""
        self._what = what
        self._each, self._most = each, most
        self._there: Counter[str] = Counter()

    def check(self, who: str) -> None:
        """Refuse one more of *who*, if there are too many."""
        if self._there[who] >= self._each:
            raise self._full(f"{self._each:,} {self._what} at once for each")
        if self._there.total() >= self._most:
            raise self._full(f"{self._most:,} {self._what} at once for all")

    @contextmanager
    def joined(self, who: str) -> Iterator[None]:
        """Count *who* in while the block lasts."""
        self.check(who)
        self._there[who] += 1
        try:
            yield
        finally:
            self._there[who] -= 1
            self._there += Counter()  # forgets those who have none

    def _full(self, most: str) -> Problem:
        return Problem(429, "too-many", f"expected at most {most}, got more; let some end", retry_after=1)
