"""Limits: how many jobs may run at once, or start in a while, across the whole fleet.

A limit is shared by all jobs whose template comes to the same key. Which jobs that are is found out when one is
claimed, from its arguments and the code that is about to run it: a limit that is changed holds at once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.breaker import Breaker, Phase, Rule, State
from mainspring.model.rate import Rate, rate
from mainspring.model.template import render
from mainspring.model.text import short_key, shortened

T = TypeVar("T")

_MOST = 1_000_000
_EVERY = timedelta(seconds=5)
_SOONEST = timedelta(milliseconds=10)
_AT_ONCE = 500
_PREFIX = "@limit:"

LATEST = timedelta(seconds=60)
"""How far ahead the next look at a limit may be: one that is further ahead is from before the clock was set back."""


@dataclass(frozen=True, init=False)
class Limit:
    """At most so many at once, or at such a rate, of the jobs that share a key: `Limit("smtp", rate="100/m")`.

    The rate is a token bucket: it lets `burst` of them start together after a rest, as many as the rate's own number
    unless it is given.
    """

    key: str
    concurrency: int | None
    rate: Rate | None
    burst: int | None

    def __init__(
        self, key: str, *, concurrency: int | None = None, rate: Rate | str | None = None, burst: int | None = None
    ) -> None:
        if not isinstance(key, str) or not key:
            raise InvalidValue(f"expected a limit to have a key such as 'tenant:{{tenant}}', got: {shortened(key)}")
        if (concurrency is None) == (rate is None):
            got = "neither" if rate is None else "both; write two limits"
            raise InvalidValue(f"expected limit {key!r} to have a concurrency or a rate, got {got}")
        if concurrency is not None:
            _check_number(concurrency, "concurrency")
        if burst is not None:
            if rate is None:
                raise InvalidValue(f"expected burst only with a rate, got it for limit {key!r}")
            _check_number(burst, "burst")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "concurrency", concurrency)
        object.__setattr__(self, "rate", None if rate is None else _rate(rate))
        object.__setattr__(self, "burst", burst)

    def want(self, arguments: Mapping[str, object]) -> Want:
        """Return what a job with these arguments wants of this limit."""
        interval = None if self.rate is None else self.rate.interval
        burst = None if self.rate is None else (self.burst or self.rate.count)
        return Want(stored_key(render(self.key, "limits", arguments)), self.concurrency, interval, burst)


class Want(msgspec.Struct, frozen=True):
    """A limit or a breaker for one job: its key, and the numbers that the code gives to it now."""

    key: str
    concurrency: int | None = None
    interval: timedelta | None = None
    burst: int | None = None
    rule: Rule | None = None  # of a breaker


class Standing(msgspec.Struct, frozen=True):
    """A limit as the database has it. The fields stand in the order of the query's columns."""

    key: str
    concurrency: int | None
    interval: timedelta | None
    burst: int | None
    full_at: datetime | None  # when the bucket will be full again, if nothing is taken from it
    held: int  # slots that running jobs hold
    waiting: bool  # some jobs wait for it
    breaker: State | None = None


class LimitStatus(msgspec.Struct, frozen=True):
    """A limit as it was at one moment, for people. The fields stand in the order of the query's columns.

    The numbers are those that the code gave to it last: either so many at once, or one every `interval`, with no more
    than `burst` together.
    """

    key: str
    concurrency: int | None
    interval: timedelta | None
    burst: int | None
    held: int  # slots that running jobs hold
    waiting: int  # jobs that wait for it


class Gate:
    """A limit while jobs are let through it."""

    def __init__(self, standing: Standing, now: datetime) -> None:
        self._standing = standing
        self.now = now
        self._held = standing.held
        self.full_at = _full_at(standing, now)
        self.holds = standing.concurrency is not None  # whether who is let through has a slot
        self.state = None

    @property
    def room(self) -> int:
        """How many could start now."""
        limit = self._standing
        if limit.concurrency is not None:
            return max(0, limit.concurrency - self._held)
        assert limit.interval is not None
        assert limit.burst is not None
        assert self.full_at is not None
        return max(0, limit.burst - math.ceil((self.full_at - self.now) / limit.interval))

    def take(self) -> None:
        """Let one job through."""
        self._held += 1
        if self.full_at is not None and self._standing.interval is not None:
            self.full_at += self._standing.interval

    def opens_at(self, ahead: int = 0) -> datetime | None:
        """When there will be a token for one that has *ahead* others before it; None where there are slots instead."""
        limit = self._standing
        if self.full_at is None or limit.interval is None or limit.burst is None:
            return None
        return self.full_at - (limit.burst - 1 - ahead) * limit.interval

    @property
    def release_at(self) -> datetime:
        """When to look again whether those that wait may go on.

        A slot that becomes free is given on at once. To look all the same is for what a crash may have left.
        """
        opens_at = self.opens_at()
        return self.now + _EVERY if opens_at is None else _soon(opens_at, self.now)

    @property
    def going(self) -> int:
        """How many may go on at a look: where nobody has a slot, many more than there is room for.

        It may be that the code no longer has this limit, and then nobody will give a slot back. If it has, they are
        judged again when they are claimed, so it holds all the same.
        """
        return max(self.room, _AT_ONCE) if self.holds and not self._held else self.room

    def look_again_at(self, released: int) -> datetime:
        """When to look again after a look that let *released* of those that wait go on.

        They take their tokens when they are claimed, and whoever claims them says anew when to look. Until then the
        bucket looks as full as before, so it is given the time in which tokens for them come in.
        """
        interval = self._standing.interval
        if interval is None or not self.room:
            return self.release_at
        # With room, those that stay are paused, or in somebody's hands.
        return _soon(self.now + released * interval, self.now) if released else self.now + _EVERY


class BreakerGate:
    """A breaker while jobs are let through it: all while it is closed, probes while it is half-open."""

    def __init__(self, standing: Standing, state: State, now: datetime) -> None:
        self.now = now
        self._held = standing.held
        self.full_at = standing.full_at
        self.holds = state.phase(now) is Phase.HALF_OPEN
        self.state = state

    @property
    def room(self) -> int:
        """How many could start now."""
        return self.state.room(self.now, self._held)

    def take(self) -> None:
        """Let one job through."""
        if self.holds:
            self.state = self.state.probe(self.now, self._held)
            self._held += 1

    @property
    def release_at(self) -> datetime:
        """When to look again whether those that wait may go on: when it ceases to be open, or as for a slot."""
        until = self.state.until
        return self.now + _EVERY if self.room or self.holds or until is None else _soon(until, self.now)

    @property
    def going(self) -> int:
        """How many may go on at a look: where no probe has begun for a while, many more than there is room for.

        It may be that the code no longer has this breaker, and then no probe will make room for others. If it has, they
        are judged again when they are claimed, so it holds all the same.
        """
        begun = self.state.probing_since or self.state.until
        unused = self.holds and not self._held and begun is not None and self.now - begun >= _EVERY
        return max(self.room, _AT_ONCE) if unused else self.room

    def look_again_at(self, released: int) -> datetime:  # noqa: ARG002 - as for a limit
        """When to look again after a look that let *released* of those that wait go on."""
        return self.release_at


def gate(standing: Standing, now: datetime) -> Gate | BreakerGate:
    """Return the gate that jobs pass which want what is *standing* there."""
    return Gate(standing, now) if standing.breaker is None else BreakerGate(standing, standing.breaker, now)


def want_of(breaker: Breaker, arguments: Mapping[str, object]) -> Want:
    """Return what a job with these arguments wants of *breaker*."""
    return Want(breaker.key_of(arguments), rule=breaker.rule)


def admit(
    asking: Iterable[tuple[T, Sequence[Want]]], gates: Mapping[str, Gate | BreakerGate]
) -> list[tuple[T, str | None]]:
    """Return, for each of those who ask in turn, the key of the limit for which it has to wait; None if it may start.

    One that has to wait takes nothing from the limits that would have let it through.
    """
    answers: list[tuple[T, str | None]] = []
    for one, wants in asking:
        closed = next((want.key for want in wants if not gates[want.key].room), None)
        if closed is None:
            for want in wants:
                gates[want.key].take()
        answers.append((one, closed))
    return answers


def _full_at(standing: Standing, now: datetime) -> datetime | None:
    """Return when the bucket will be full again.

    That can't be longer than it takes to fill it from empty: what is stored may be from when the rate was lower, or
    from before the clock was set back.
    """
    if standing.interval is None or standing.burst is None:
        return None
    return min(max(standing.full_at or now, now), now + standing.burst * standing.interval)


def _soon(instant: datetime, now: datetime) -> datetime:
    """Return *instant*, or what is nearest to it of the times at which a look makes sense."""
    return min(max(instant, now + _SOONEST), now + LATEST)


def _rate(value: Rate | str) -> Rate:
    return rate(value, "the rate of a limit")


def _check_number(number: int, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _MOST:
        raise InvalidValue(f"expected {name} to be a whole number from 1 to {_MOST:,}, got: {shortened(number)}")


def stored_key(key: str) -> str:
    """Return what the limit is called in the database, where the keys of breakers begin with @ and its own must not."""
    key = short_key(key)
    return f"{_PREFIX}{key}" if key.startswith("@") else key


def shown_key(key: str) -> str:
    """Return what people call the limit that the database calls *key*."""
    return key.removeprefix(_PREFIX)


def check_limit_key(key: str) -> None:
    """Refuse what no limit can be called."""
    if not isinstance(key, str) or not key:
        raise InvalidValue(f"expected the key of a limit, such as 'smtp', got: {shortened(key)}")
