"""Retention: which rule says how long a finished job is kept, and which of those it covers go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.duration import duration, spelled
from mainspring.model.job import JobState, check_name
from mainspring.model.team import check_team
from mainspring.model.text import counted, shortened

DAY = timedelta(days=1)
_FIRST = UUID(int=0)
_LARGEST_COUNT = 100_000_000


class Covers(msgspec.Struct, frozen=True):
    """Which finished jobs a rule is about; None means any. The default team is named like any other."""

    team: str | None = None
    queue: str | None = None
    state: JobState | None = None

    def check(self) -> None:
        """Refuse what is no selection of finished jobs."""
        if self.team is not None:
            check_team(self.team)
        if self.queue is not None:
            check_name(self.queue, "queue")
        if self.state is not None and not self.state.final:
            final = ", ".join(state for state in JobState if state.final)
            raise InvalidValue(f"expected state to be one in which a job has ended, {final}, got: {self.state}")

    @property
    def precedence(self) -> tuple[bool, bool, bool]:
        """Of several rules that are about a job the one with the largest counts: team, then queue, then state."""
        return self.team is not None, self.queue is not None, self.state is not None

    def meets(self, other: Covers) -> bool:
        """Return whether there can be a job that both are about."""
        pairs = ((self.team, other.team), (self.queue, other.queue), (self.state, other.state))
        return all(one is None or another is None or one == another for one, another in pairs)

    def __str__(self) -> str:
        told = (("team", self.team), ("queue", self.queue), ("state", self.state))
        return ", ".join(f"{name} {value}" for name, value in told if value is not None) or "everything else"


class RetentionRule(msgspec.Struct, frozen=True):
    """How long the jobs are kept that it covers, and how many of them: whichever says sooner.

    One that says no age keeps them for as long as jobs are kept that no rule covers.
    """

    covers: Covers
    age: timedelta | None = None
    count: int | None = None

    def check(self) -> None:
        """Refuse what makes no sense."""
        self.covers.check()
        if self.age is None and self.count is None:
            raise InvalidValue("expected an age or a count to keep, got neither; `remove` takes a rule back")
        if self.age is not None and not duration(self.age, "age"):
            raise InvalidValue("expected age to be a duration longer than 0, such as 7d, got: 0")
        count = self.count
        if count is not None and (
            isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _LARGEST_COUNT
        ):
            raise InvalidValue(
                f"expected count to be a whole number from 1 to {_LARGEST_COUNT:,}, got: {shortened(count)}"
            )

    def __str__(self) -> str:
        age = None if self.age is None else f"for {spelled(self.age)}"
        newest = None if self.count is None else f"the newest {counted(self.count, 'job')}"
        return f"{self.covers}: " + " and no more than ".join(part for part in (age, newest) if part)


class Edge(msgspec.Struct, frozen=True):
    """Where what is kept begins: jobs that ended before, or at the same instant with a smaller id, go."""

    at: datetime
    id: UUID = _FIRST


class Kept(msgspec.Struct, frozen=True):
    """A rule as it is applied now: how long it keeps jobs, and which others take jobs from it."""

    covers: Covers
    age: timedelta
    count: int | None = None
    exceptions: tuple[Covers, ...] = ()
    reached: datetime | None = None  # what it covers and ended before then is gone
    changes: int = 0  # how often rules were changed before it was read

    def aged(self, now: datetime) -> Edge:
        """Return where what is young enough begins."""
        return Edge(day_of(now - self.age) if self.age >= DAY else now - self.age)


def day_of(moment: datetime) -> datetime:
    """Return when the day of *moment* begins, in UTC."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def covering(job: Covers, rules: Iterable[Covers]) -> Covers:
    """Return which of *rules* counts for jobs of the team, queue and state of *job*; one is always about them."""
    return max((one for one in rules if one.meets(job)), key=lambda one: one.precedence)


def exceptions(covers: Covers, others: Iterable[Covers]) -> tuple[Covers, ...]:
    """Return those of *others* that take some jobs from a rule, because they say more precisely which they mean."""
    return tuple(one for one in others if one.precedence > covers.precedence and one.meets(covers))


def nth_newest(tally: Sequence[tuple[datetime, int]], n: int) -> tuple[datetime, int] | None:
    """Return the minute of a *tally* in which the *n*th newest lies, and which it is of that minute, from 0 on.

    The tally says how many ended in each minute. None where there are not so many.
    """
    for minute, count in sorted(tally, reverse=True):
        if n <= count:
            return minute, n - 1
        n -= count
    return None


class Prunable(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule lets go now: how many jobs, with the members of workflows that go, and when the first ended."""

    covers: Covers
    age: timedelta
    count: int | None
    jobs: int
    oldest: datetime | None
