"""Dead letters: failed jobs, by what they have in common, and what comes of replaying them."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from mainspring.model.job import JobState
from mainspring.model.text import counted

RECENT = 100
"""A replay is judged by so many that finished last: a thousand successes must not hide a new fault."""

FEWEST = 5
"""Where there is no canary, so many must have finished before one failure can end a replay."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one cause. `type` and `message` are those of `sample`, the newest of them."""

    fingerprint: str
    task: str
    type: str
    message: str
    count: int
    first_seen: datetime
    last_seen: datetime
    sample: UUID


class Letter(NamedTuple):
    """A dead letter by its id and the instant at which it died: one that failed again since is another."""

    id: UUID
    finished_at: datetime


class Count(NamedTuple):
    """How many dead letters were counted, and whether there may be more than were looked at."""

    letters: int
    more: bool


class Meant(NamedTuple):
    """How many dead letters are meant, and the instant before which they had died: by that, later ones are not."""

    letters: int
    finished_until: datetime | None


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """How far a replay is, or what came of it.

    `failed` have failed again; `cancelled` have ended in another way, or were pruned. `stopped` says why it ended
    early.
    """

    found: int
    replayed: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    stopped: str | None = None

    @property
    def left(self) -> int:
        """How many are dead letters still: not replayed, or not allowed to be because of their key."""
        return self.found - self.replayed

    @property
    def unfinished(self) -> int:
        """How many live again and have not finished yet."""
        return self.replayed - self.succeeded - self.failed - self.cancelled


class Watch:
    """Says when too many of what was replayed fail again: a larger share than *stop_at*.

    While only the canary is out it is judged as a whole, so that it ends as soon as it can't turn out well.
    """

    def __init__(self, stop_at: float) -> None:
        self._stop_at = stop_at
        self._recent: deque[bool] = deque(maxlen=RECENT)

    def saw(self, state: JobState) -> None:
        """Take note of a job that has finished; one that was cancelled says nothing about the cause."""
        if state in (JobState.SUCCEEDED, JobState.FAILED):
            self._recent.append(state is JobState.FAILED)

    def objection(self, expected: int = FEWEST) -> str | None:
        """Return why to stop, or None; it takes *expected* for the number that will finish if fewer have."""
        failed, seen = sum(self._recent), len(self._recent)
        if failed <= self._stop_at * max(seen, expected):
            return None
        last = "last " if seen == RECENT else ""
        return (
            f"{failed:,} of the {last}{counted(seen, 'job')} that finished failed again, more than {self._stop_at:.0%}"
        )
